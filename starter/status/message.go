package status

// maxMessage is how long the message of a condition may be, in bytes.
const maxMessage = 32768

// fitting is as much of a message as a condition holds.
func fitting(message string) string { return message[:min(len(message), maxMessage)] }
