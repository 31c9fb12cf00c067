package cluster

import "github.com/tenon-sh/tenon/cloud"

// classes are the node classes.
type classes struct {
	*shared
	feed *feed[cloud.NodeClass]
}

func newClasses(w *watches, kind cloud.Kind) *classes {
	c := &classes{shared: w.shared}
	c.feed = open(w, kind.GroupVersion(), kind.Resource, kind.New(), nil, whole[cloud.NodeClass], nameOf[cloud.NodeClass], c.classChanged)
	return c
}

// NodeClass returns the node class with a name, or nil.
func (c *classes) NodeClass(name string) cloud.NodeClass {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.feed.items[name]
}

// NodeClasses returns all node classes ordered by name.
func (c *classes) NodeClasses() []cloud.NodeClass {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return sorted(c.feed.items)
}

func (c *classes) classChanged(old, now cloud.NodeClass, _, exists bool) {
	if !exists {
		now = old
	}
	c.publish(Event{Kind: ClassChanged, Name: now.GetName()})
}
