// Package clients drives the simulated AWS account with other people's clients: the AWS CLI and boto3 as Debian packages
// them (awscli, python3-boto3). The simulator was written beside Tenon, and both use the AWS SDK for Go, so the two could
// agree on the same mistake. These clients are generated from AWS's models by other people, and know nothing of either.
//
// What the tests prove: the clients find everything in the answers that the account has according to the simulator's control
// endpoint (clients_test.go, cli_test.go); their pages, waiters, tokens and error codes work; and every answer boto3 gets
// has what its model says, and nothing else (strict.py). They do not prove that EC2 would answer the same. The CLI also judges
// tenon cleanup: what it sees of the account afterwards (cleanup_test.go). The tests need no laboratory; they take a minute, most
// of which the CLI needs to start.
package clients
