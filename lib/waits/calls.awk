# SPDX-License-Identifier: LGPL-2.1-or-later
#
# calls.awk - what is made of calls.txt.
#
#     awk -f calls.awk -v make=list calls.txt > mpi_calls.h
#     awk -f calls.awk -v make=code calls.txt > mpi_calls.c
#
# The list has JOULE_MPI_CALLS(CALL), CALL(name, what) for each of them.  The code
# has each call under its names for C, Fortran (mpif.h and the module mpi) and
# Fortran 2008 (mpi_f08 in Open MPI and in MPICH).

function fail(text) {
    printf "%s:%d: %s\n", FILENAME, FNR, text > "/dev/stderr"
    failed = 1
    exit 1
}

/^#/ || NF == 0 { next }

$1 == "what" {
    wants[$2] = ""
    for (i = 3; i <= NF; i++)
        wants[$2] = wants[$2] " " $i
    next
}

{
    if (!($2 in wants))
        fail("nothing is said of what '" $2 "' is")
    names[++count] = $1
    what[$1] = $2
    args[$1] = ""
    for (i = 3; i <= NF; i++) {
        if ($i !~ /^[nbtpsqSrQmxk]:[a-z_]+$/)
            fail("'" $i "' is no argument")
        args[$1] = args[$1] " " $i
    }
}

END {
    if (failed)
        exit 1
    if (make == "list")
        list()
    else
        code()
}

function list(    i) {
    print "/* Made of calls.txt by calls.awk. */"
    print "#define JOULE_MPI_CALLS(CALL) \\"
    for (i = 1; i <= count; i++)
        printf "    CALL(%s, %s)%s\n", names[i], what[names[i]], i < count ? " \\" : ""
}

# Whether MPI 4 has the call with counts of 64 bits, too.  Fortran's libraries make it in
# C.
function may_be_large(name) {
    return args[name] ~ /(n:(send|recv)?count|p:(send|recv)counts)( |$)/ &&
        args[name] ~ /(t:(send|recv)?type|p:sendtypes)( |$)/
}

# The declarations of all arguments of a call, or their names alone.
function arguments(name, fortran, named, large,    n, list, i, letter, text) {
    n = split(args[name], list, " ")
    text = ""
    for (i = 1; i <= n; i++) {
        letter = large && list[i] ~ /^n:.*count$/ ? "x" : substr(list[i], 1, 1)
        text = text (i > 1 ? ", " : "")
        if (named != "names")
            text = text (fortran || letter !~ /[ntx]/ ? "void *" :
                         letter == "n" ? "int " : letter == "x" ? "int64_t " :
                         "uintptr_t ")
        if (named != "types")
            text = text substr(list[i], 3)
    }
    if (fortran)
        text = text ", " (named == "names" ? "error" :
                          named == "types" ? "int *" : "int *error")
    return text
}

# An argument as a C program would give it.
function value(name, want, fortran, descriptors,    n, list, i, letter) {
    n = split(args[name], list, " ")
    for (i = 1; i <= n; i++)
        if (substr(list[i], 3) == want)
            letter = substr(list[i], 1, 1)
    if (letter == "")
        fail(name " has no argument '" want "'")
    if (want == "newcomm" && what[name] != "new_comm_later")
        return fortran ? "joule_mpi_comm(*(int *)newcomm)" : "joule_mpi_at(newcomm, 0)"
    if (want == "comm_before")
        return "before"
    if (letter == "n")
        return fortran ? "*(int *)" want : want
    if (letter == "t" && want ~ /type$/)
        return fortran ? "joule_mpi_type(*(int *)" want ")" : "joule_mpi_handle(" want ")"
    if (letter == "t")
        return fortran ? "joule_mpi_comm(*(int *)" want ")" : "joule_mpi_handle(" want ")"
    if (letter == "q")
        return fortran ? "joule_mpi_request(*(int *)request)" : "joule_mpi_at(request, 0)"
    if (letter == "b" && descriptors)
        return "*(void **)" want
    return want
}

# What is looked at before the call: requests are changed by it, and a status that
# the program ignores takes another one's place.
function before(name, fortran,    n, list, i, letter, arg) {
    n = split(args[name], list, " ")
    for (i = 1; i <= n; i++) {
        letter = substr(list[i], 1, 1)
        arg = substr(list[i], 3)
        if (arg == "comm_before")
            printf "    before = %s;\n", fortran ?
                "joule_mpi_comm(*(int *)comm_before)" : "joule_mpi_at(comm_before, 0)"
    }
    for (i = 1; i <= n; i++) {
        letter = substr(list[i], 1, 1)
        arg = substr(list[i], 3)
        if (letter == "m")
            printf "    joule_waits_take_message(&call, %s);\n", arg
        else if (letter == "r")
            printf "    joule_waits_take(&call, %s, 1);\n", arg
        else if (letter == "Q")
            printf "    joule_waits_take(&call, %s, %s);\n", arg, value(name, "count", fortran)
        else if (letter == "s")
            printf "    %s = joule_waits_status(&call, %s);\n", arg, arg
        else if (letter == "S")
            printf "    %s = joule_waits_statuses(&call, %s, %s);\n", arg, arg,
                   value(name, "count", fortran)
    }
}

function after(name, fortran, descriptors,    n, list, i, text) {
    n = split(wants[what[name]], list, " ")
    text = "&call"
    for (i = 1; i <= n; i++)
        if (list[i] != "requests" && !(list[i] == "request" && args[name] ~ /r:request/))
            text = text ", " value(name, list[i], fortran, descriptors)
    printf "joule_waits_%s(%s);\n", what[name], text
}

# Requests may be gone with an error.
function after_error(name,    n, list, i) {
    n = split(args[name], list, " ")
    for (i = 1; i <= n; i++)
        if (list[i] ~ /^[rQ]:/)
            printf "    else\n        joule_waits_failed(&call, %s);\n", substr(list[i], 3)
}

# With [descriptors] a buffer is the address of its address.
function function_of(name, symbol, fortran, descriptors, large,    next_call) {
    next_call = sprintf("next(%s)", arguments(name, fortran, "names"))
    printf "\nJOULE_WRAPPER %s %s(%s)\n{\n", fortran ? "void" : "int", symbol,
           arguments(name, fortran, "", large)
    printf "    static _Atomic(void *) known;\n"
    printf "    %s (*next)(%s) = joule_waits_next(\"%s\", &known);\n", fortran ? "void" : "int",
           arguments(name, fortran, "types", large), symbol
    printf "    struct joule_waits_call call;\n"
    if (args[name] ~ /:comm_before/)
        printf "    uintptr_t before;\n"
    if (fortran) {
        printf "    int own_error[2] = {0}; /* of 8 bytes, if so be */\n\n    if (!error)\n        error = own_error;\n"
        printf "    if (!next) {\n        *error = joule_waits_absent(\"%s\");\n", symbol
        printf "        return;\n    }\n"
    } else {
        printf "    int rc;\n\n    if (!next)\n"
        printf "        return joule_waits_absent(\"%s\");\n", symbol
    }
    printf "    if (!joule_waits_begin(&call, JOULE_MPI_%s, %s, %s,\n", name,
           fortran ? "true" : "false", large ? "true" : "false"
    print "                           __builtin_return_address(0))) {"
    if (fortran)
        printf "        %s;\n        return;\n    }\n", next_call
    else
        printf "        return %s;\n    }\n", next_call
    before(name, fortran)
    printf "    %s%s;\n    joule_waits_leave(&call);\n    if (%s == 0)\n        ",
           fortran ? "" : "rc = ", next_call, fortran ? "*error" : "rc"
    after(name, fortran, descriptors)
    after_error(name)
    printf "    joule_waits_end(&call);\n"
    if (!fortran)
        print "    return rc;"
    print "}"
}

function code(    i, name, low) {
    print "/* Made of calls.txt by calls.awk. */"
    print "#include \"lib/waits/calls.h\""
    for (i = 1; i <= count; i++) {
        name = names[i]
        low = tolower(name)
        function_of(name, "MPI_" name, 0)
        if (may_be_large(name))
            function_of(name, "MPI_" name "_c", 0, 0, 1)
        if (args[name] ~ /k:/)
            continue
        if (what[name] == "collective_init") {
            function_of(name, "MPIX_" name, 0)
            function_of(name, "mpix_" low "_", 1)
        }
        function_of(name, "mpi_" low "_", 1)
        function_of(name, "mpi_" low "_f08_", 1)
        function_of(name, "mpi_" low "_f08ts_", 1, 1)
    }
}
