// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan decides what of the PagingPolicies is in force, what is written for
// Alertmanager, what is tested, and what each policy's status says. It is pure: no client,
// no clock.
//
// A policy that is wrong changes nothing: the spec that was applied last stays in
// force. So the specs that are in force are a part of what is written (Written).
package plan

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"time"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/alerts/pagerduty"
	"github.com/bellwether-dev/bellwether/alerts/paging"
	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Kind is what is written for Alertmanager.
type Kind string

// Kinds of configuration.
const (
	// KindObject is an AlertmanagerConfig for each policy.
	KindObject Kind = "AlertmanagerConfig"
	// KindSecret is one Secret with a complete configuration.
	KindSecret Kind = "Secret"
)

const (
	// SecretName is the Secret with the configuration, the secrets that it reads, and
	// the policies that are in force.
	SecretName = paging.SecretName
	// ConfigFile is its key of the configuration.
	ConfigFile = "alertmanager.yaml"
	// PoliciesFile is its key of the policies that are in force.
	PoliciesFile = paging.PoliciesFile
	// objectPrefix is before the name of a policy in that of its AlertmanagerConfig.
	objectPrefix = "bellwether-"
	// maxSecret is how many bytes the Secret may have; the API server takes 1 MiB.
	maxSecret = 900 << 10
)

// ObjectName is the name of the AlertmanagerConfig of a policy, in the policy's namespace.
func ObjectName(policy string) string { return objectPrefix + policy }

// Input is what was observed.
type Input struct {
	// Now is the hub's time.
	Now  time.Time
	Kind Kind
	// Namespace of the Secret; a policy with the scope Fleet has to be there.
	Namespace string
	// Folder is where Alertmanager has the keys of the Secret as files.
	Folder string
	// PagerDuty are the hosts that receivers may name.
	PagerDuty pagerduty.Hosts
	Policies  []v1alpha1.PagingPolicy
	Operators []v1alpha1.ManagedOperator
	SLOs      []v1alpha1.OperatorSLO
	// Secrets has every key of a Secret that a policy refers to.
	Secrets map[SecretRef]Secret
	// Written are the data of the Secret as it is; nil if there is none.
	Written map[string][]byte
	// Refused are the policies whose AlertmanagerConfig the API server refused, with why.
	Refused map[types.NamespacedName]error
	// Rules are any that make every alert there is.
	Rules *slo.Rules
	// Tests are the self-tests that ended since they were asked for.
	Tests map[types.NamespacedName]v1alpha1.PagingSelfTestStatus
}

// SecretRef is a key of a Secret.
type SecretRef struct{ Namespace, Name, Key string }

// Secret is what was seen of it.
type Secret struct {
	Value []byte
	// Problem says why there is no value, for a person; it is empty otherwise.
	Problem string
}

// Decision is what to do.
type Decision struct {
	// Data are those of the Secret; nil: it stays as it is.
	Data map[string][]byte
	// Objects are the AlertmanagerConfigs that there have to be, by the policies'
	// names, and no others; nil: they stay as they are.
	Objects map[types.NamespacedName]*monitoring.AlertmanagerConfigSpec
	// Fleet is the policy with the scope Fleet that is in force.
	Fleet types.NamespacedName
	// Statuses of all policies.
	Statuses map[types.NamespacedName]v1alpha1.PagingPolicyStatus
	// Tests are the policies whose self-test is due.
	Tests []types.NamespacedName
}

// Next decides.
func Next(in Input) Decision {
	operators := paging.Operators(in.Operators, in.SLOs)
	written, failed := readPolicies(in.Written)
	problems := judge(in, operators, written)
	var inForce []paging.Policy
	out := Decision{}
	try := func() error {
		inForce = effective(in, problems, written)
		paging.Assign(operators, inForce)
		return out.render(in, inForce)
	}
	if failed == nil {
		failed = try()
	}
	if errors.Is(failed, errFull) {
		failed = refuseNewest(neverInForce(in, problems, written), problems, try)
	}
	if failed != nil {
		// Nothing is written, so that what was written stays in force.
		out.Data, out.Objects = nil, nil
	}
	out.Statuses = statuses(in, problems, inForce, written, failed)
	out.Tests = dueTests(in, inForce, out.Statuses)
	return out
}

// errFull says that a configuration does not fit.
var errFull = errors.New("the Secret is full")

// refuseNewest refuses as many of these policies as have no room, the newest first, so
// that those which are in force can still be changed.
func refuseNewest(added []*v1alpha1.PagingPolicy, problems map[types.NamespacedName]paging.Problem,
	try func() error) error {
	only := func(n int) error {
		for i, p := range added {
			delete(problems, keyOfObject(p))
			if i >= n {
				problems[keyOfObject(p)] = paging.Problem{
					Reason: v1alpha1.ReasonConfigurationInvalid,
					Message: fmt.Sprintf(
						"there is no room for it in Secret %s, which holds %d KiB: use fewer policies or receivers",
						SecretName,
						maxSecret>>10,
					),
				}
			}
		}
		return try()
	}
	fit := sort.Search(len(added), func(n int) bool { return errors.Is(only(n+1), errFull) })
	return only(fit)
}

// neverInForce are the policies that nothing is wrong with and that were never written,
// the oldest first.
func neverInForce(in Input, problems map[types.NamespacedName]paging.Problem,
	written map[types.NamespacedName]paging.Policy) []*v1alpha1.PagingPolicy {
	var out []*v1alpha1.PagingPolicy
	for i := range in.Policies {
		p := &in.Policies[i]
		key := keyOfObject(p)
		if _, known := written[key]; !known && problems[key].Reason == "" && p.DeletionTimestamp == nil {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b *v1alpha1.PagingPolicy) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.Name, b.Name))
	})
	return out
}

// readPolicies are those that were in force when the Secret was written.
func readPolicies(data map[string][]byte) (map[types.NamespacedName]paging.Policy, error) {
	out := map[types.NamespacedName]paging.Policy{}
	list, err := paging.InForce(data)
	if err != nil {
		return nil, fmt.Errorf(
			"what was in force is not known: %w; remove this key to begin anew with the policies as "+
				"they are now",
			err,
		)
	}
	for _, p := range list {
		out[keyOf(p)] = p
	}
	return out, nil
}

func keyOf(p paging.Policy) types.NamespacedName {
	return types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
}

func keyOfObject(p *v1alpha1.PagingPolicy) types.NamespacedName {
	return types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
}

// effective are the policies in force: as they are now, or as they were written last
// where they are wrong now. The first come first. The fleet's policy stays in force
// after it was deleted, until there is another one: somebody has to be notified.
func effective(in Input, problems map[types.NamespacedName]paging.Problem,
	written map[types.NamespacedName]paging.Policy) []paging.Policy {
	var now, before []paging.Policy
	hasFleet := false
	for i := range in.Policies {
		p := &in.Policies[i]
		key := keyOfObject(p)
		last, known := written[key]
		switch {
		case p.DeletionTimestamp != nil:
			continue
		case problems[key].Reason == "":
			last = paging.PolicyOf(p)
			now = append(now, last)
		case known:
			before = append(before, last)
		default:
			continue
		}
		hasFleet = hasFleet || last.IsFleet()
	}
	if !hasFleet {
		for _, p := range written {
			if p.IsFleet() {
				before = append(before, p)
			}
		}
	}
	byName := func(a, b paging.Policy) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	}
	slices.SortFunc(now, byName)
	slices.SortFunc(before, byName)
	return append(now, before...)
}

// ErrUnrouted says that a configuration leaves alerts without a receiver.
var ErrUnrouted = errors.New("alerts without a receiver")

// render makes what is written.
func (d *Decision) render(in Input, inForce []paging.Policy) error {
	text, err := paging.Config(inForce, in.Folder)
	if err != nil {
		return err
	}
	if err := checkRoutes(in, inForce, text); err != nil {
		return err
	}
	policies, err := json.Marshal(inForce)
	if err != nil {
		return fmt.Errorf("encode policies: %w", err)
	}
	d.Data = map[string][]byte{PoliciesFile: policies}
	// An Alertmanager that reads the Secret does not stop when somebody installs
	// prometheus-operator's kinds: what it reads is kept until the Secret is deleted.
	if _, read := in.Written[ConfigFile]; read || in.Kind == KindSecret {
		d.Data[ConfigFile] = text
		addSecrets(d.Data, in, inForce)
	}
	if in.Kind == KindObject {
		if d.Objects, err = objects(inForce); err != nil {
			return err
		}
		d.Fleet = keyOf(inForce[slices.IndexFunc(inForce, paging.Policy.IsFleet)])
	}
	size := 0
	for key, value := range d.Data {
		size += len(key) + len(value)
	}
	if size > maxSecret {
		return fmt.Errorf("%w: the configuration has %d KiB, and it holds %d: use fewer policies or receivers", errFull,
			size>>10, maxSecret>>10)
	}
	return nil
}

// objects are the AlertmanagerConfigs of policies.
func objects(inForce []paging.Policy) (map[types.NamespacedName]*monitoring.AlertmanagerConfigSpec, error) {
	out := map[types.NamespacedName]*monitoring.AlertmanagerConfigSpec{}
	for _, p := range inForce {
		spec, err := paging.Object(p, inForce)
		if errors.Is(err, paging.ErrTimeZone) {
			// It is from before there were AlertmanagerConfigs here. A ticket at night is
			// better than none, and than to hold up the other policies.
			tickets := *p.Spec.Tickets
			tickets.Hours = nil
			p.Spec.Tickets = &tickets
			spec, err = paging.Object(p, inForce)
		}
		if err != nil {
			return nil, fmt.Errorf("policy %s: %w", keyOf(p), err)
		}
		out[keyOf(p)] = spec
	}
	return out, nil
}

// checkRoutes follows every alert through the configuration.
func checkRoutes(in Input, inForce []paging.Policy, text []byte) error {
	router, err := paging.NewRouter(text)
	if err != nil {
		return err
	}
	var all []paging.Operator
	for _, p := range inForce {
		all = append(all, p.Operators...)
	}
	if lost := router.Unrouted(paging.Alerts(in.Rules.All(), all)); len(lost) > 0 {
		return fmt.Errorf("%w: %d of them, such as %s", ErrUnrouted, len(lost), lost[0].Name)
	}
	return nil
}

// addSecrets adds what the configuration reads. What cannot be read now stays as it was.
func addSecrets(data map[string][]byte, in Input, inForce []paging.Policy) {
	for _, p := range inForce {
		for _, use := range p.Secrets() {
			seen := in.Secrets[SecretRef{p.Namespace, use.Name, use.Key}]
			value := seen.Value
			if seen.Problem != "" || use.Format.Check(value) != "" {
				value = in.Written[use.File]
			}
			data[use.File] = paging.Trim(value)
		}
	}
}

// statuses of all policies. If something failed, nothing is written.
func statuses(in Input, problems map[types.NamespacedName]paging.Problem, inForce []paging.Policy,
	written map[types.NamespacedName]paging.Policy, failed error) map[types.NamespacedName]v1alpha1.PagingPolicyStatus {
	out := map[types.NamespacedName]v1alpha1.PagingPolicyStatus{}
	for i := range in.Policies {
		p := &in.Policies[i]
		status := *p.Status.DeepCopy()
		report(&status, in, p, problems[keyOfObject(p)], inForce, written, failed)
		out[keyOfObject(p)] = status
	}
	return out
}
