# Make rules for models. Include this file in a Makefile of your own:
#
#     include /usr/local/share/mlc/mlc.mk
#     app: app.o digits.o digits_weights.o      # digits.onnx lies beside it
#     app.o: digits.h
#     digits.mlc: MLC_IMPORT = --bind n=1
#
#     NAME.onnx -> NAME.mlc -> NAME.h, NAME.cc, NAME_weights.cc, and NAME_main.cc, which runs the model on .npy files
#
# NAME is an identifier of C: digits_v2, not digits-v2.
# The variables below may be set before the include, or for one target, as above.

# What stands between import and codegen.
MLC_PIPE ?= mlc-simplify | mlc-fuse | mlc-lower | mlc-plan
# Options of mlc-import, and of mlc-codegen: with `--weights file` the weights are NAME.weights, for P_init.
MLC_IMPORT ?=
MLC_CODEGEN ?= --weights text

%.mlc: %.onnx
	mlc-import $(MLC_IMPORT) -o $@ $<

# By way of a folder: mlc-codegen leaves a project, and this one is yours.
%.h %.cc %_weights.cc %_main.cc: %.mlc
	cat $< | $(MLC_PIPE) | mlc-codegen $(MLC_CODEGEN) --name $(*F) --main -I $(<D) -o $*.tmp
	mv $*.tmp/$(*F)[._]* $(@D)
	rm -r $*.tmp

.PRECIOUS: %.mlc %.h %.cc %_weights.cc %_main.cc
