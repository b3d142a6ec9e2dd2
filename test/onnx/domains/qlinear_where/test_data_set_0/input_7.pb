BsyJ
×#=