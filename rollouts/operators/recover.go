// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operators

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
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// Recovery gives an OperatorInstall the admission that its cluster keeps, so that the agent continues with exactly
// that admission.
type Recovery struct {
	Key       types.NamespacedName
	Admission v1alpha1.Admission
}

// recoverAdmissions restores the holds and admissions that clusters keep and the hub does not have. The holds come
// first, so that an agent has the same holds after its admission is restored.
func (p *pass) recoverAdmissions() {
	if missing := p.listMissingHolds(); len(missing) > 0 {
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

// isRecoverable reports whether a cluster keeps an admission that the hub can continue from.
func (p *pass) isRecoverable(i Install) bool {
	return i.Kept != nil && !i.Deleting && i.Kept.Admission.Revision > 0 &&
		i.Kept.Admission.Revision <= p.lastRecoverable
}

// listMissingHolds returns the holds that agents keep and the operator does not have, each once, as many as fit into
// the spec. Holds that most clusters keep come first. So no agent can displace a hold of the hub, or a hold that two
// other agents keep.
//
// Holds are counted by their version, settings and release, so no agent can present its own hold as a hold of
// other agents.
func (p *pass) listMissingHolds() []v1alpha1.VersionHold {
	type key struct{ version, settings, release string }
	toKey := func(h v1alpha1.VersionHold) key { return key{h.Version, h.Settings, h.Release} }
	isListed, keepers := map[key]bool{}, map[key]int{}
	var list []v1alpha1.VersionHold
	for _, i := range p.Installs {
		if !p.isRecoverable(i) {
			continue
		}
		counted := map[key]bool{}
		for _, h := range i.Kept.Holds {
			if k := toKey(h); !counted[k] {
				counted[k] = true
				keepers[k]++
			}
			isOwn := func(own v1alpha1.VersionHold) bool { return isSameHold(own, h) }
			if !isListed[toKey(h)] && !slices.ContainsFunc(p.Operator.Spec.Holds, isOwn) {
				isListed[toKey(h)], list = true, append(list, h)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b v1alpha1.VersionHold) int {
		return cmp.Compare(keepers[toKey(b)],
			keepers[toKey(a)])
	})
	return list[:min(len(list), max(maxHolds-len(p.Operator.Spec.Holds), 0))]
}

// findRecoveredRevision returns the highest revision of an admission that was found on a cluster. It returns 0 if
// there is none.
func (p *pass) findRecoveredRevision() int64 {
	var highest int64
	for _, i := range p.Installs {
		if !i.Deleting && i.Admitted.Recovered <= p.lastRecoverable {
			highest = max(highest, i.Admitted.Recovered)
		}
	}
	return highest
}

// awaitResume returns a summary that waits for a person if admissions with a higher revision than the resumed revision
// were found on clusters. It also sets status.recovery. It needs no catalog. It returns nil, and clears
// status.recovery, if there is nothing to wait for.
func (p *pass) awaitResume() *conditions.Summary {
	p.decision.Status.Recovery = nil
	highest := p.findRecoveredRevision()
	if highest <= p.readResumedRevision() {
		return nil
	}
	recovery := &v1alpha1.OperatorRecovery{Request: p.buildResumeRequest(highest), Revision: highest}
	versions := map[string]int32{}
	for _, i := range p.Installs {
		if i.Admitted.Recovered > 0 && i.Admitted.Recovered <= highest && !i.Deleting {
			recovery.Clusters++
			versions[cmp.Or(formatVersion(i.Installed), "no version reported")]++
		}
	}
	p.decision.Status.Recovery = recovery
	var running []string
	for _, v := range listMostUsed(versions) {
		running = append(running, fmt.Sprintf("%s on %d", v.Version, v.Clusters))
	}
	isHighest := func(i Install) bool { return !i.Deleting && i.Admitted.Recovered == highest }
	text := fmt.Sprintf("found on %s, admitted by rollouts that this hub does not have (%s; revision %d on %s is the "+
		"highest); no cluster is admitted before a person resumes the operator: `bellwether operator resume %s`, or "+
		"set spec.resume to %s", phrase.Count(int(recovery.Clusters), "cluster"), phrase.First(running, maxNamed),
		highest, p.Installs[slices.IndexFunc(p.Installs, isHighest)].Cluster, p.Operator.Name, recovery.Request)
	s := newStalled(v1alpha1.ReasonRecovered, text+p.noteAfterResume()+p.noteHolds())
	return &s
}

// noteAfterResume returns a note on what is rolled out after a person resumes the operator. The lost hub recorded
// whether installed operators were taken over. This hub has no such record and takes them over again, which changes no
// cluster that was already taken over.
func (p *pass) noteAfterResume() string {
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

// buildResumeRequest returns the value of spec.resume with which a person agrees to continue from admissions up to a
// revision. The value is valid for this ManagedOperator only: a value in Git must not be valid for the next hub too.
func (p *pass) buildResumeRequest(revision int64) string {
	sum := sha256.Sum256([]byte(p.Operator.UID))
	return hex.EncodeToString(sum[:4]) + "-" + strconv.FormatInt(revision, 10)
}

// readResumedRevision returns the highest revision that a person agreed to continue from. It stays if spec.resume
// is removed.
func (p *pass) readResumedRevision() int64 {
	var accepted int64
	if p.newest != nil {
		accepted = p.newest.Spec.Resumed
	}
	_, text, _ := strings.Cut(p.Operator.Spec.Resume, "-")
	revision, err := strconv.ParseInt(text, 10, 64)
	if err != nil || p.buildResumeRequest(revision) != p.Operator.Spec.Resume {
		return accepted
	}
	return max(accepted, revision)
}
