package main

import "os"

// isTerminal knows of none here: nobody is asked at one.
func isTerminal(*os.File) bool { return false }
