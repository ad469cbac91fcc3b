// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

// aspect is the subject area of a link, which determines the precedence of the link.
type aspect int

const (
	// aboutRunning is the operator on a cluster, the cluster itself, and everything without another aspect.
	aboutRunning aspect = iota
	// aboutReading is whether this command can read a cluster that otherwise reports.
	aboutReading
	// aboutRollingOut is a rollout, in the explanation of one cluster.
	aboutRollingOut
	// aboutIntention is the request of the ManagedOperator, and whether the hub can fulfil it.
	aboutIntention
	// aboutEnded is a rollout that has ended without success.
	aboutEnded
	// aboutSupport is whether the versions of hub, agent and other parts are compatible.
	aboutSupport
	// aboutSymptom is the effect of another problem, such as a firing alert or a spent budget.
	aboutSymptom
)

// precedence orders links by what a person must do first. A combination that is not in the list has the position of
// the same state with aboutRunning.
var precedence = []struct {
	state State
	about aspect
	// why is the reason for the position.
	why string
}{
	{Unknown, aboutRunning, "until the cluster reports again, the state of the other parts is not known"},
	{Failed, aboutRunning, "a part that does not work now is repaired first"},
	{Failed, aboutRollingOut, "what runs here works, and clusters that the rollout has changed might not work"},
	{Failed, aboutIntention, "what runs works; the request, such as a version that is held, is corrected next"},
	{Failed, aboutEnded, "nothing continues: the current request decides about the next rollout"},
	{Unknown, aboutReading, "the agent reports worse problems; missing access of the reader hides only details"},
	{Degraded, aboutRunning, "what runs is not as requested"},
	{Degraded, aboutRollingOut, "what runs is as requested, and should be replaced by another version"},
	{Degraded, aboutIntention, "what runs is as requested, and changes of it might not be detected"},
	{Degraded, aboutSupport, "everything works, with versions that are not tested together"},
	{Waiting, aboutRunning, "a person ends the wait, which might delay the correction of the cause of an alert"},
	{Degraded, aboutSymptom, "no other remedy is known: the alert says where to look"},
	{Unknown, aboutSymptom, "a known problem comes before unknown data, such as a budget without data"},
	{Progressing, aboutRunning, "no person needs to act"},
	{Healthy, aboutRunning, "the object is as requested"},
}

// computeRank returns the position of a link in the precedence. The lowest position comes first.
func computeRank(l Link) int {
	findPlace := func(about aspect) int {
		for i, p := range precedence {
			if p.state == l.State && p.about == about {
				return i
			}
		}
		return -1
	}
	if i := findPlace(l.about); i >= 0 {
		return i
	}
	return findPlace(aboutRunning)
}
