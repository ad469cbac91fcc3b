// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/phrase"
)

// Recovery gives an OperatorInstall the admission that its cluster keeps, so that its
// agent goes on with exactly that.
type Recovery struct {
	Key       types.NamespacedName
	Admission v1alpha1.Admission
}

// recover takes over what clusters keep of the operator and the hub does not know of: the
// holds first, so that the agent, once it is admitted, has the same holds to keep.
func (p *pass) recover() {
	if missing := p.missing(); len(missing) > 0 {
		all := append(slices.Clone(p.Operator.Spec.Holds), missing...)
		p.decision.Holds = &all
		return
	}
	for _, i := range p.Installs {
		if !p.isRecoverable(i) || p.isFrozen(i) || !equality.Semantic.DeepEqual(i.Holds, p.Operator.Spec.Holds) {
			continue
		}
		admission := *i.Kept.Admission.DeepCopy()
		admission.Recovered = true
		p.decision.Recover = append(p.decision.Recover,
			Recovery{Key: types.NamespacedName{Namespace: i.Namespace, Name: i.Name}, Admission: admission})
	}
}

// isRecoverable tells whether a cluster keeps something that the hub can go on from.
func (p *pass) isRecoverable(i Install) bool {
	return i.Kept != nil && !i.Deleting && i.Kept.Admission.Revision > 0 &&
		i.Kept.Admission.Revision <= p.lastRecoverable
}

// missing are the holds that the operator does not have, each once, as many as there is
// room for: those first that most clusters keep. No agent displaces a hold that the hub has, or one that two others
// keep.
//
// What agents keep is compared as a whole: none can pass off a hold of its own as that of others.
func (p *pass) missing() []v1alpha1.VersionHold {
	type key struct{ version, settings, release string }
	of := func(h v1alpha1.VersionHold) key { return key{h.Version, h.Settings, h.Release} }
	known, keep := map[key]bool{}, map[key]int{}
	var list []v1alpha1.VersionHold
	for _, i := range p.Installs {
		if !p.isRecoverable(i) {
			continue
		}
		counted := map[key]bool{}
		for _, h := range i.Kept.Holds {
			if k := of(h); !counted[k] {
				counted[k] = true
				keep[k]++
			}
			isOwn := func(own v1alpha1.VersionHold) bool { return isSame(own, h) }
			if !known[of(h)] && !slices.ContainsFunc(p.Operator.Spec.Holds, isOwn) {
				known[of(h)], list = true, append(list, h)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b v1alpha1.VersionHold) int { return cmp.Compare(keep[of(b)], keep[of(a)]) })
	return list[:min(len(list), max(maxHolds-len(p.Operator.Spec.Holds), 0))]
}

// found is the highest revision of an admission that was found on a cluster; 0 where
// there is none.
func (p *pass) found() int64 {
	var highest int64
	for _, i := range p.Installs {
		if !i.Deleting && i.Admitted.Recovered <= p.lastRecoverable {
			highest = max(highest, i.Admitted.Recovered)
		}
	}
	return highest
}

// awaitResume waits for a person where the operator was found on clusters. It needs no
// catalog. It returns nil where there is nothing to wait for.
func (p *pass) awaitResume() *conditions.Summary {
	p.decision.Status.Recovery = nil
	highest := p.found()
	if highest <= p.resumed() {
		return nil
	}
	recovery := &v1alpha1.OperatorRecovery{Request: p.request(highest), Revision: highest}
	versions := map[string]int32{}
	for _, i := range p.Installs {
		if i.Admitted.Recovered > 0 && i.Admitted.Recovered <= highest && !i.Deleting {
			recovery.Clusters++
			versions[cmp.Or(versionText(i.Installed), "no version reported")]++
		}
	}
	p.decision.Status.Recovery = recovery
	var running []string
	for _, v := range mostUsed(versions) {
		running = append(running, fmt.Sprintf("%s on %d", v.Version, v.Clusters))
	}
	isHighest := func(i Install) bool { return !i.Deleting && i.Admitted.Recovered == highest }
	text := fmt.Sprintf("found on %s, admitted by rollouts that this hub does not have (%s; revision %d on %s is the "+
		"highest); no cluster is admitted before a person resumes the operator: `bellwether operator resume %s`, or "+
		"set spec.resume to %s", phrase.Count(int(recovery.Clusters), "cluster"), phrase.First(running, maxNamed),
		highest, p.Installs[slices.IndexFunc(p.Installs, isHighest)].Cluster, p.Operator.Name, recovery.Request)
	s := stalled(v1alpha1.ReasonRecovered, text+p.afterResume()+p.heldVersions())
	return &s
}

// afterResume is a note on what is rolled out once a person has resumed the operator. The hub that is lost knew whether
// what others installed was taken over; this one takes it over once more, which changes no cluster where it was.
func (p *pass) afterResume() string {
	t := p.decision.Status.Target
	switch {
	case p.Operator.Spec.AdoptsFirst(&p.decision.Status) && t != nil:
		return fmt.Sprintf("; what is installed is then taken over, before version %s is rolled out", t.Version)
	case p.Operator.Spec.AdoptsFirst(&p.decision.Status):
		return "; what is installed is then taken over"
	case t != nil:
		return fmt.Sprintf("; it is then rolled out in version %s", t.Version)
	}
	return ""
}

// request is what spec.resume has to be set to for a person's agreement to go on from
// admissions up to a revision. It is for this ManagedOperator only: an agreement that
// was written to Git must not hold for the hub after the next one.
func (p *pass) request(revision int64) string {
	sum := sha256.Sum256([]byte(p.Operator.UID))
	return hex.EncodeToString(sum[:4]) + "-" + strconv.FormatInt(revision, 10)
}

// resumed is up to which revision people have agreed to go on. What was agreed stays so
// if spec.resume is removed.
func (p *pass) resumed() int64 {
	var before int64
	if p.newest != nil {
		before = p.newest.Spec.Resumed
	}
	_, text, _ := strings.Cut(p.Operator.Spec.Resume, "-")
	revision, err := strconv.ParseInt(text, 10, 64)
	if err != nil || p.request(revision) != p.Operator.Spec.Resume {
		return before
	}
	return max(before, revision)
}
