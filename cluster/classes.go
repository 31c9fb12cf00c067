package cluster

import awsv1 "github.com/tenon-sh/tenon/api/aws/v1"

// classes are the EC2NodeClasses.
type classes struct {
	*shared
	feed *feed[*awsv1.EC2NodeClass]
}

func newClasses(w *watches) *classes {
	c := &classes{shared: w.shared}
	c.feed = open(w, awsv1.SchemeGroupVersion, "ec2nodeclasses", &awsv1.EC2NodeClass{}, nil, whole[*awsv1.EC2NodeClass], nameOf[*awsv1.EC2NodeClass], c.classChanged)
	return c
}

// NodeClass returns the EC2NodeClass with a name, or nil.
func (c *classes) NodeClass(name string) *awsv1.EC2NodeClass {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.feed.items[name]
}

// NodeClasses returns all EC2NodeClasses ordered by name.
func (c *classes) NodeClasses() []*awsv1.EC2NodeClass {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return sorted(c.feed.items)
}

func (c *classes) classChanged(old, now *awsv1.EC2NodeClass, _, exists bool) {
	if !exists {
		now = old
	}
	c.publish(Event{Kind: ClassChanged, Name: now.Name})
}
