package status

// maxMessage is the maximum length of a condition's message, in bytes.
const maxMessage = 32768

// fitting truncates a message to what a condition holds.
func fitting(message string) string { return message[:min(len(message), maxMessage)] }
