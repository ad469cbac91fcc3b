// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package paging

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
	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Kind is the kind of object that is written for Alertmanager.
type Kind string

// Kinds of configuration.
const (
	// KindObject is an AlertmanagerConfig for each policy.
	KindObject Kind = "AlertmanagerConfig"
	// KindSecret is one Secret with a complete configuration.
	KindSecret Kind = "Secret"
)

const (
	// ConfigFile is the key of the configuration in the Secret SecretName.
	ConfigFile = "alertmanager.yaml"
	// objectPrefix precedes the name of a policy in the name of its AlertmanagerConfig.
	objectPrefix = "bellwether-"
	// maxSecret is the maximum size of the Secret in bytes. The API server accepts 1 MiB.
	maxSecret = 900 << 10
)

// ObjectName returns the name of the AlertmanagerConfig of a policy. It is in the policy's namespace.
func ObjectName(policy string) string { return objectPrefix + policy }

// Input is the observed state.
type Input struct {
	// Now is the hub's time.
	Now  time.Time
	Kind Kind
	// Namespace is the namespace of the Secret. A policy with the scope Fleet must be in this namespace.
	Namespace string
	// Folder is the folder in which Alertmanager has the keys of the Secret as files.
	Folder string
	// PagerDuty are the hosts that receivers may name.
	PagerDuty pagerduty.Hosts
	Policies  []v1alpha1.PagingPolicy
	Operators []v1alpha1.ManagedOperator
	SLOs      []v1alpha1.OperatorSLO
	// Secrets has every key of a Secret that a policy refers to.
	Secrets map[SecretRef]Secret
	// Written is the current data of the Secret; nil if there is no Secret.
	Written map[string][]byte
	// Refused has the errors of policies whose AlertmanagerConfig the API server refused.
	Refused map[types.NamespacedName]error
	// Rules are rules that can make every alert of Bellwether. Their alerts are used to check the routes.
	Rules *slo.Rules
	// Tests are the results of self-tests that have ended.
	Tests map[types.NamespacedName]v1alpha1.PagingSelfTestStatus
}

// SecretRef is a key of a Secret.
type SecretRef struct{ Namespace, Name, Key string }

// Secret is the observed value of a key.
type Secret struct {
	Value []byte
	// Problem explains to a person why there is no value. It is empty if there is one.
	Problem string
}

// Decision contains the actions.
type Decision struct {
	// Data is the new data of the Secret; nil: the Secret is not changed.
	Data map[string][]byte
	// Objects are all AlertmanagerConfigs that must exist, by the
	// policies' names; others are deleted. Nil: nothing is changed.
	Objects map[types.NamespacedName]*monitoring.AlertmanagerConfigSpec
	// Fleet is the policy with the scope Fleet that is in force.
	Fleet types.NamespacedName
	// Statuses are the statuses of all policies.
	Statuses map[types.NamespacedName]v1alpha1.PagingPolicyStatus
	// Tests are the policies whose self-test must run now.
	Tests []types.NamespacedName
}

// Next decides which policies are in force, what is written, and the statuses.
func Next(in Input) Decision {
	operators := Operators(in.Operators, in.SLOs)
	written, failed := readPolicies(in.Written)
	problems := findProblems(in, operators, written)
	var inForce []Policy
	out := Decision{}
	apply := func() error {
		inForce = listInForce(in, problems, written)
		Assign(operators, inForce)
		return out.render(in, inForce)
	}
	if failed == nil {
		failed = apply()
	}
	if errors.Is(failed, errFull) { // too large: refuse policies that were never in force
		failed = refuseNewest(listNeverInForce(in, problems, written), problems, apply)
	}
	if failed != nil {
		// Nothing is written, so the existing configuration stays in force.
		out.Data, out.Objects = nil, nil
	}
	out.Statuses = buildStatuses(in, problems, inForce, written, failed)
	out.Tests = listDueTests(in, inForce, out.Statuses)
	return out
}

// errFull is wrapped by errors about a configuration that is too large for the Secret.
var errFull = errors.New("the Secret is full")

// refuseNewest refuses as many of the added policies as necessary to fit into the Secret, the newest first,
// so that policies that are already in force can still be changed. It adds the refusals to problems.
// apply renders the configuration with these problems. The error is the result of the last call of apply.
func refuseNewest(added []*v1alpha1.PagingPolicy, problems map[types.NamespacedName]Problem,
	apply func() error) error {
	acceptFirst := func(n int) error {
		for i, p := range added {
			delete(problems, toObjectKey(p))
			if i >= n {
				problems[toObjectKey(p)] = Problem{
					Reason: v1alpha1.ReasonConfigurationInvalid,
					Message: fmt.Sprintf(
						"there is no room for it in Secret %s, which holds %d KiB: use fewer policies or receivers",
						SecretName,
						maxSecret>>10,
					),
				}
			}
		}
		return apply()
	}
	// fit is the number of the oldest added policies that fit into the Secret.
	fit := sort.Search(len(added), func(n int) bool { return errors.Is(acceptFirst(n+1), errFull) })
	return acceptFirst(fit)
}

// listNeverInForce returns the valid policies that were never written, the oldest first.
func listNeverInForce(in Input, problems map[types.NamespacedName]Problem,
	written map[types.NamespacedName]Policy) []*v1alpha1.PagingPolicy {
	var out []*v1alpha1.PagingPolicy
	for i := range in.Policies {
		p := &in.Policies[i]
		key := toObjectKey(p)
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

// readPolicies returns the policies that were in force when the Secret was written, by
// namespace and name. The result is empty if the Secret was never written.
func readPolicies(data map[string][]byte) (map[types.NamespacedName]Policy, error) {
	out := map[types.NamespacedName]Policy{}
	list, err := InForce(data)
	if err != nil {
		return nil, fmt.Errorf(
			"the policies in force are unknown: %w; remove this key to start again with the "+
				"current policies",
			err,
		)
	}
	for _, p := range list {
		out[toKey(p)] = p
	}
	return out, nil
}

func toKey(p Policy) types.NamespacedName {
	return types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
}

func toObjectKey(p *v1alpha1.PagingPolicy) types.NamespacedName {
	return types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
}

// listInForce returns the policies in force: valid policies in their current state,
// then invalid policies in the state that was written last. A deleted policy of the
// fleet stays in force until there is another one, because some user must be notified.
func listInForce(in Input, problems map[types.NamespacedName]Problem,
	written map[types.NamespacedName]Policy) []Policy {
	var current, previous []Policy
	hasFleet := false
	for i := range in.Policies {
		p := &in.Policies[i]
		key := toObjectKey(p)
		policy, known := written[key]
		switch {
		case p.DeletionTimestamp != nil:
			continue
		case problems[key].Reason == "":
			policy = ToPolicy(p)
			current = append(current, policy)
		case known:
			previous = append(previous, policy)
		default:
			continue
		}
		hasFleet = hasFleet || policy.IsFleet()
	}
	if !hasFleet {
		for _, p := range written {
			if p.IsFleet() {
				previous = append(previous, p)
			}
		}
	}
	compareNames := func(a, b Policy) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	}
	slices.SortFunc(current, compareNames)
	slices.SortFunc(previous, compareNames)
	return append(current, previous...)
}

// ErrUnrouted is wrapped by errors about a configuration that leaves alerts without a receiver.
var ErrUnrouted = errors.New("alerts without a receiver")

// render sets Data, Objects and Fleet from the policies in force. It returns an error that wraps errFull if the data
// is too large, or ErrUnrouted if an alert would reach no user. After an error, the fields must not be used.
func (d *Decision) render(in Input, inForce []Policy) error {
	text, err := BuildConfig(inForce, in.Folder)
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
	// An Alertmanager that reads the Secret continues to read it after prometheus-operator's
	// kinds are installed, so its configuration is kept until the Secret is deleted.
	if _, isWritten := in.Written[ConfigFile]; isWritten || in.Kind == KindSecret {
		d.Data[ConfigFile] = text
		addSecrets(d.Data, in, inForce)
	}
	if in.Kind == KindObject {
		if d.Objects, err = buildObjects(inForce); err != nil {
			return err
		}
		d.Fleet = toKey(inForce[slices.IndexFunc(inForce, Policy.IsFleet)])
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

// buildObjects returns the AlertmanagerConfigs of policies.
func buildObjects(inForce []Policy) (map[types.NamespacedName]*monitoring.AlertmanagerConfigSpec, error) {
	out := map[types.NamespacedName]*monitoring.AlertmanagerConfigSpec{}
	for _, p := range inForce {
		spec, err := BuildObject(p, inForce)
		if errors.Is(err, ErrTimeZone) {
			// The policy was written before AlertmanagerConfigs were used. Its hours are removed,
			// because a ticket at night is better than no ticket, and must not block the other policies.
			tickets := *p.Spec.Tickets
			tickets.Hours = nil
			p.Spec.Tickets = &tickets
			spec, err = BuildObject(p, inForce)
		}
		if err != nil {
			return nil, fmt.Errorf("policy %s: %w", toKey(p), err)
		}
		out[toKey(p)] = spec
	}
	return out, nil
}

// checkRoutes returns ErrUnrouted if the configuration has no receiver for any possible alert.
func checkRoutes(in Input, inForce []Policy, text []byte) error {
	router, err := NewRouter(text)
	if err != nil {
		return err
	}
	var all []Operator
	for _, p := range inForce {
		all = append(all, p.Operators...)
	}
	if lost := router.Unrouted(Alerts(in.Rules.All(), all)); len(lost) > 0 {
		return fmt.Errorf("%w: %d of them, such as %s", ErrUnrouted, len(lost), lost[0].Name)
	}
	return nil
}

// addSecrets adds the secrets that the configuration reads to
// data. A secret that cannot be read keeps its previous value.
func addSecrets(data map[string][]byte, in Input, inForce []Policy) {
	for _, p := range inForce {
		for _, use := range p.Secrets() {
			secret := in.Secrets[SecretRef{p.Namespace, use.Name, use.Key}]
			value := secret.Value
			if secret.Problem != "" || use.Format.Check(value) != "" {
				value = in.Written[use.File]
			}
			data[use.File] = Trim(value)
		}
	}
}

// buildStatuses returns the statuses of all policies. If failed is not nil, nothing is written because of this error.
func buildStatuses(in Input, problems map[types.NamespacedName]Problem, inForce []Policy,
	written map[types.NamespacedName]Policy, failed error) map[types.NamespacedName]v1alpha1.PagingPolicyStatus {
	out := map[types.NamespacedName]v1alpha1.PagingPolicyStatus{}
	for i := range in.Policies {
		p := &in.Policies[i]
		status := *p.Status.DeepCopy()
		setStatus(&status, in, p, problems[toObjectKey(p)], inForce, written, failed)
		out[toObjectKey(p)] = status
	}
	return out
}
