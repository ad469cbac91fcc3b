// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

// aspect is what a link is about, as far as that decides what is told first.
type aspect int

const (
	// aboutRunning is what runs on a cluster, the cluster itself, and everything that is about nothing else.
	aboutRunning aspect = iota
	// aboutReading is whether this command can read a cluster that otherwise reports.
	aboutReading
	// aboutRollingOut is a rollout, where one cluster is explained.
	aboutRollingOut
	// aboutIntention is what the ManagedOperator asks for, and whether the hub can bring that about.
	aboutIntention
	// aboutEnded is a rollout that has ended without success.
	aboutEnded
	// aboutSupport is whether the versions of parts fit together.
	aboutSupport
	// aboutSymptom is what something else causes, such as a firing alert or a spent budget.
	aboutSymptom
)

// precedence orders links by what a person has to do first. What is not in it has the place of the same state about
// what runs.
var precedence = []struct {
	state State
	about aspect
	// why it comes before those that follow.
	why string
}{
	{Unknown, aboutRunning, "whether the rest is still so is not known before the cluster reports again"},
	{Failed, aboutRunning, "what does not work now is repaired first"},
	{Failed, aboutRollingOut, "what runs here works, and clusters that the rollout has changed may not"},
	{Failed, aboutIntention, "what runs works; what is asked for, such as a version that is held, is corrected then"},
	{Failed, aboutEnded, "nothing goes on: what is asked for now decides about the next rollout"},
	{Unknown, aboutReading, "the agent reports what is worse; that the reader has no access hides only details"},
	{Degraded, aboutRunning, "what runs is not as asked"},
	{Degraded, aboutRollingOut, "what runs is as asked, and should be left for another version"},
	{Degraded, aboutIntention, "what runs is as asked, and changes of it may not be noticed"},
	{Degraded, aboutSupport, "everything works, with versions that are not tested together"},
	{Waiting, aboutRunning, "a person ends it, and what waits may be the correction of what an alert tells of"},
	{Degraded, aboutSymptom, "nothing else that a person has to do is known: the alert says where to look"},
	{Unknown, aboutSymptom, "what is known to be wrong comes before what is not known, such as a budget without data"},
	{Progressing, aboutRunning, "nobody has to do anything"},
	{Healthy, aboutRunning, "it is as asked"},
}

// rank is the place of a link in the precedence: less is told first.
func rank(l Link) int {
	place := func(about aspect) int {
		for i, p := range precedence {
			if p.state == l.State && p.about == about {
				return i
			}
		}
		return -1
	}
	if i := place(l.about); i >= 0 {
		return i
	}
	return place(aboutRunning)
}
