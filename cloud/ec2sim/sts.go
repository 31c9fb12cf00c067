package ec2sim

// sts is the account's STS, which tells callers their identity.
type sts struct{ account *account }

type callerXML struct {
	ARN     string `xml:"Arn"`
	UserID  string `xml:"UserId"`
	Account string `xml:"Account"`
}

func (s *sts) getCallerIdentity(_ *call) (any, error) {
	return callerXML{s.account.creator(), iamID("AIDA", s.account.creator()), accountID}, nil
}
