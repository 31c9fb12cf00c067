// Package clients has other people's clients drive the simulated AWS account: the AWS CLI and boto3 as Debian packages them
// (awscli, python3-boto3). The simulator was written beside Tenon, and both use the AWS SDK for Go, so that the two could agree
// on the same mistake. These clients are generated from AWS's models by other people, and know nothing of either.
//
// What the tests prove: that the clients find everything in the answers that the account has, as the simulator's control
// endpoint says it (clients_test.go, cli_test.go); that their pages, waiters, tokens and error codes work; and that
// every answer boto3 gets has what its model says, and nothing else (strict.py). They do not prove that EC2 would answer
// the same. There is no laboratory and no Tenon here, so it takes a minute, most of which the CLI needs to start.
package clients
