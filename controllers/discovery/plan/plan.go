// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan decides which FleetCluster there is to be for the sources that want its
// name, what of it comes from its source, and when it goes. It is pure: what was observed
// goes in, what to write comes out.
package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/discovery/sources"
	"github.com/bellwether-dev/bellwether/phrase"
)

// Input is everything that the decision about one name rests on.
type Input struct {
	Now time.Time
	// Name of the FleetCluster.
	Name string
	// Cluster is nil where there is none of that name.
	Cluster *v1alpha1.FleetCluster
	// Known says that the hub sees all objects of the kind that the cluster's sourceRef
	// names. Where it is false, nothing is concluded from what it does not see.
	Known bool
	// Empty says that there is no object at all of that kind.
	Empty bool
	// Own is the source that the cluster's sourceRef names; nil if it is not there.
	Own *sources.Source
	// Rival is an older FleetCluster whose sourceRef names the same source.
	Rival string
	// Candidates are sources whose default name this is and that no FleetCluster names, in
	// any order.
	Candidates []sources.Source
	Options    Options
}

// Options are what users configure.
type Options struct {
	// Labels says for each label of a FleetCluster from which field of the source it comes.
	Labels map[string]string
	// Selector selects the sources that become FleetClusters. It does not matter to a
	// FleetCluster that is there already. nil selects all.
	Selector labels.Selector
}

// DefaultLabels are mapped unless users configure others.
func DefaultLabels() map[string]string {
	return map[string]string{"platform": "platform", "region": "region", "version": "version"}
}

// Decision is what to do about one name.
type Decision struct {
	// Write is what the FleetCluster is to have of the source; nil if it has that.
	Write *Content
	// Delete says to delete the FleetCluster, which is then offboarded as its spec says.
	Delete bool
	// Status is what status.source is to be.
	Status *v1alpha1.ClusterSource
	// Refused are sources that do not become a FleetCluster until a person acts.
	Refused []Refusal
}

// Content is what a FleetCluster has of its source.
type Content struct {
	// Ref is set where this controller makes, or made, the FleetCluster. It does not write
	// the sourceRef of others.
	Ref *v1alpha1.SourceReference
	// Labels that are mapped. Those that others set are left to them: see Unowned.
	Labels map[string]string
}

// Refusal says why a source does not become a FleetCluster.
type Refusal struct {
	Source  sources.Source
	Reason  string
	Message string
}

// Reasons of refusals, for Events on the source.
const (
	ReasonNameTaken   = "FleetClusterNameTaken"
	ReasonNameInvalid = "FleetClusterNameInvalid"
)

// IsMade tells whether this controller made the FleetCluster. It never deletes another one.
func IsMade(c *v1alpha1.FleetCluster) bool {
	return c.Annotations[v1alpha1.AnnotationDiscovered] == "true"
}

// Next decides.
//
//	no FleetCluster ──── the oldest source that is ready makes it; the others are refused
//	without sourceRef ── made by hand: untouched; sources that want its name are refused
//	source present ───── its labels and power state are followed
//	source paused or relocating ── nothing is changed but the status
//	  and vanished then ─────────── moved: the FleetCluster is kept
//	source deleted ───── the FleetCluster is deleted if it was made here, else kept
//	kind not seen ────── nothing is concluded
func Next(in Input) Decision {
	candidates := eligible(in)
	if in.Cluster == nil {
		return create(in, candidates)
	}
	if in.Cluster.DeletionTimestamp != nil {
		return Decision{Status: in.Cluster.Status.Source}
	}
	d := Decision{Status: in.Cluster.Status.Source.DeepCopy()}
	if in.Cluster.Spec.SourceRef == nil {
		d.Status = nil
		if len(candidates) > 0 {
			d.Status = &v1alpha1.ClusterSource{Message: unlinked}
		}
	} else {
		follow(in, &d)
	}
	refuse(in, candidates, &d)
	return d
}

const unlinked = "other sources have this name: to let this FleetCluster follow one of them, set spec.sourceRef; to " +
	"have another FleetCluster for one of them, create it with another name and that spec.sourceRef"

// eligible are the candidates that would become a FleetCluster, the oldest first.
func eligible(in Input) []sources.Source {
	var all []sources.Source
	for _, s := range in.Candidates {
		if isSelected(in.Options.Selector, s) && s.NotReady == "" && !s.Deleting && !s.Paused && !s.Relocating {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b sources.Source) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(sources.Key(a.Ref), sources.Key(b.Ref)))
	})
	return all
}

func isSelected(selector labels.Selector, s sources.Source) bool {
	return s.Labels[v1alpha1.LabelDiscover] != "false" && (selector == nil || selector.Matches(labels.Set(s.Labels)))
}

func create(in Input, candidates []sources.Source) Decision {
	var d Decision
	if len(candidates) == 0 {
		return d
	}
	if problems := invalidName(in.Name); problems != "" {
		for _, s := range candidates {
			d.Refused = append(d.Refused, Refusal{Source: s, Reason: ReasonNameInvalid, Message: fmt.Sprintf(
				"The name %q cannot be that of a FleetCluster: %s. To add the cluster to the fleet, create a "+
					"FleetCluster with another name whose spec.sourceRef names this object.", in.Name, problems)})
		}
		return d
	}
	own := candidates[0]
	in.Own, in.Cluster = &own, &v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: in.Name,
		Annotations: map[string]string{v1alpha1.AnnotationDiscovered: "true"}},
		Spec: v1alpha1.FleetClusterSpec{SourceRef: &own.Ref}}
	present(in, &d)
	d.Write = &Content{Ref: &own.Ref, Labels: d.Write.labels()}
	refuse(in, candidates[1:], &d)
	return d
}

// maxName is the longest name of a FleetCluster.
const maxName = 50

func invalidName(name string) string {
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return strings.Join(problems, "; ")
	}
	if len(name) > maxName {
		return fmt.Sprintf("it has %d characters, and %d are allowed", len(name), maxName)
	}
	return ""
}

// refuse tells the candidates that somebody else has the name.
func refuse(in Input, candidates []sources.Source, d *Decision) {
	var clashes []v1alpha1.SourceReference
	for _, s := range candidates {
		owner := "was made by hand"
		if ref := in.Cluster.Spec.SourceRef; ref != nil {
			owner = "is that of " + sources.Describe(*ref)
		}
		d.Refused = append(d.Refused, Refusal{Source: s, Reason: ReasonNameTaken, Message: fmt.Sprintf(
			"FleetCluster %s %s, so this cluster is not in the fleet. To add it, create a FleetCluster with another "+
				"name whose spec.sourceRef names this object.", in.Name, owner)})
		if len(clashes) < maxClashes {
			clashes = append(clashes, s.Ref)
		}
	}
	if d.Status != nil {
		d.Status.Clashes = clashes
	}
}

const maxClashes = 10

// follow decides about a FleetCluster that names a source.
func follow(in Input, d *Decision) {
	switch {
	case !in.Known:
	case in.Rival != "":
		d.Status = &v1alpha1.ClusterSource{State: v1alpha1.SourceTaken, Message: fmt.Sprintf(
			"FleetCluster %s is older and names the same source: change spec.sourceRef of one of them", in.Rival)}
	case in.Own == nil:
		vanished(in, d)
	case in.Own.Deleting && !in.Own.Paused && !in.Own.Relocating:
		gone(in, d, "is being deleted")
	default:
		present(in, d)
	}
}

// vanished decides about a source that is not there any more.
func vanished(in Input, d *Decision) {
	ref := *in.Cluster.Spec.SourceRef
	before := in.Cluster.Status.Source
	if before == nil {
		before = &v1alpha1.ClusterSource{}
	}
	switch {
	case before.State == v1alpha1.SourcePaused, before.State == v1alpha1.SourceRelocating,
		before.State == v1alpha1.SourceMoved:
		d.Status = kept(before, v1alpha1.SourceMoved, sources.Describe(ref)+
			" was paused or relocating when it vanished, so it was moved to another management cluster. "+
			"The cluster stays in the fleet; to remove it, delete the "+
			"FleetCluster")
	case in.Empty:
		d.Status = kept(before, v1alpha1.SourceMissing, fmt.Sprintf("the hub sees no %s at all, which is taken for a "+
			"mistake and removes nothing. If the cluster is gone, delete the FleetCluster", ref.Kind))
	default:
		gone(in, d, "does not exist")
	}
}

func gone(in Input, d *Decision, how string) {
	if IsMade(in.Cluster) {
		d.Delete = true
		return
	}
	before := in.Cluster.Status.Source
	if before == nil {
		before = &v1alpha1.ClusterSource{}
	}
	d.Status = kept(before, v1alpha1.SourceMissing, fmt.Sprintf("%s %s. The FleetCluster was made by hand, so that it "+
		"is kept; to remove the cluster from the fleet, delete it", sources.Describe(*in.Cluster.Spec.SourceRef), how))
}

// kept is the status of a FleetCluster that outlives its source. That its machines are
// stopped is not known any more.
func kept(before *v1alpha1.ClusterSource, state v1alpha1.SourceState, message string) *v1alpha1.ClusterSource {
	return &v1alpha1.ClusterSource{State: state, Message: message, Labels: before.Labels}
}

// present decides about a source that is there.
func present(in Input, d *Decision) {
	before := in.Cluster.Status.Source
	if before == nil {
		before = &v1alpha1.ClusterSource{}
	}
	status := &v1alpha1.ClusterSource{State: v1alpha1.SourcePresent, PowerState: in.Own.PowerState,
		PowerStateSince: before.PowerStateSince, Labels: before.Labels}
	if status.PowerState != before.PowerState || status.PowerStateSince == nil {
		status.PowerStateSince = &metav1.Time{Time: in.Now.UTC().Truncate(time.Second)}
	}
	if status.PowerState == "" {
		status.PowerStateSince = nil
	}
	d.Status = status
	switch {
	case in.Own.Relocating:
		status.State = v1alpha1.SourceRelocating
		status.Message = "it is being moved to another management cluster: rollouts defer the cluster until that ends"
	case in.Own.Paused:
		status.State = v1alpha1.SourcePaused
		status.Message = "its owner paused it: rollouts defer the cluster until it is resumed"
	default:
		wanted, problems := Map(in.Options.Labels, in.Own.Fields)
		status.Message = phrase.Truncate(strings.Join(problems, "; "), maxMessage)
		if IsMade(in.Cluster) {
			d.Write = &Content{Ref: in.Cluster.Spec.SourceRef, Labels: wanted}
		} else {
			d.Write = &Content{Labels: wanted}
		}
		if isWritten(in.Cluster.Labels, before.Labels, wanted) {
			d.Write = nil
		}
	}
}

const maxMessage = 1024

func (c *Content) labels() map[string]string {
	if c == nil {
		return nil
	}
	return c.Labels
}

// isWritten tells whether a FleetCluster has the labels that are wanted, or those of people
// in their place. ours are the ones that were set from the source.
func isWritten(has, ours, wanted map[string]string) bool {
	for key, value := range wanted {
		now, exists := has[key]
		if set, isOurs := ours[key]; !exists || isOurs && (set != value || now != value) {
			return false
		}
	}
	for key := range ours {
		if _, isWanted := wanted[key]; !isWanted {
			return false
		}
	}
	return true
}

// Map returns the labels that fields of a source are mapped to. A field that the source
// does not have makes no label; problems says which values cannot be labels.
func Map(mapping, fields map[string]string) (mapped map[string]string, problems []string) {
	mapped = map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(mapping)) {
		// Versions of some distributions have a plus sign: v1.31.2+k3s1.
		value := strings.ReplaceAll(fields[mapping[key]], "+", "_")
		if value == "" {
			continue
		}
		if invalid := validation.IsValidLabelValue(value); len(invalid) > 0 {
			problems = append(problems, fmt.Sprintf("its %s cannot be the value of label %s: %s", mapping[key], key,
				invalid[0]))
			continue
		}
		mapped[key] = value
	}
	return mapped, problems
}
