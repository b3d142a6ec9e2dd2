"""NVRTC, the compiler of CUDA C++ as a library: of the toolkit, or of the wheel nvidia-cuda-nvrtc."""
import ctypes
import pathlib
import sys


def library():
    """The library, or nothing."""
    wheels = pathlib.Path(sys.prefix).glob("lib/python*/site-packages/nvidia/*/lib")
    for folder in [*pathlib.Path("/usr/local").glob("cuda*/lib64"), *wheels]:
        for part in sorted(folder.glob("libnvrtc-builtins.so.*")):  # which it would look for where systems have theirs
            ctypes.CDLL(str(part), ctypes.RTLD_GLOBAL)
        for path in sorted(folder.glob("libnvrtc.so.*")):
            return ctypes.CDLL(str(path))
    for name in "libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12":
        try:
            return ctypes.CDLL(name)
        except OSError:
            pass
    return None


def compiled(lib, source):
    """What it says of a program for sm_80, warnings too, or nothing; and the PTX."""
    program = ctypes.c_void_p()
    lib.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"program.cu", 0, None, None)
    options = (ctypes.c_char_p * 3)(b"-arch=sm_80", b"-std=c++17", b"-fmad=false")
    code = lib.nvrtcCompileProgram(program, 3, options)
    size = ctypes.c_size_t()
    lib.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value + 1)
    lib.nvrtcGetProgramLog(program, log)
    said = log.value.decode().strip() or (f"error {code}" if code else "")
    lib.nvrtcGetPTXSize(program, ctypes.byref(size))
    ptx = ctypes.create_string_buffer(size.value + 1)
    lib.nvrtcGetPTX(program, ptx)
    lib.nvrtcDestroyProgram(ctypes.byref(program))
    return said, ptx.value.decode()
