/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/waits/trace_libotf2.h"

#include <errno.h>
#include <stddef.h>

static OTF2_ErrorCode no_message(void *arg, const char *file, uint64_t line,
                                 const char *function, OTF2_ErrorCode code,
                                 const char *format, va_list ap)
{
    (void)arg;
    (void)file;
    (void)line;
    (void)function;
    (void)format;
    (void)ap;
    return code;
}

void joule_otf2_silence(void)
{
    OTF2_Error_RegisterCallback(no_message, NULL);
}

static OTF2_FlushType before_flush(void *arg, OTF2_FileType type,
                                   OTF2_LocationRef location, void *caller,
                                   bool is_final)
{
    (void)arg;
    (void)type;
    (void)location;
    (void)caller;
    (void)is_final;
    return OTF2_FLUSH;
}

OTF2_ErrorCode joule_otf2_prepare(OTF2_Archive *archive)
{
    static const OTF2_FlushCallbacks callbacks = {.otf2_pre_flush =
                                                      before_flush};
    OTF2_ErrorCode code =
        OTF2_Archive_SetFlushCallbacks(archive, &callbacks, NULL);

    return code == OTF2_SUCCESS
               ? OTF2_Archive_SetSerialCollectiveCallbacks(archive)
               : code;
}

int joule_otf2_check(OTF2_ErrorCode code, struct joule_error *err)
{
    if (code == OTF2_SUCCESS)
        return 0;
    return joule_error_set(err, EIO, "cannot write the archive: %s",
                           OTF2_Error_GetDescription(code));
}
