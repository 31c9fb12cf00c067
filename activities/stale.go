package activities

// The mirror may be behind, and one worker's may be further behind than another's. What ends a machine is never concluded
// from it alone: an object whose name is known is read from the API server, and where none is, the mirror has to be fresh.
