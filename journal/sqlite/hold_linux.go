package sqlite

const setLockOFD = 37 // F_OFD_SETLK
