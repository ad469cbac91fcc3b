// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package paging

import (
	"bytes"
	"fmt"
	"net/mail"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Problem is an error in a PagingPolicy: a reason of its condition Ready, and a message for a person.
type Problem struct{ Reason, Message string }

// Hub contains the properties of a hub that policies are checked against.
type Hub struct {
	// Namespace is the namespace that the policy with the scope Fleet must be in. Empty: any.
	Namespace string
	// Objects means that AlertmanagerConfigs are written, which do not support all settings.
	Objects   bool
	Operators []Operator
	// CheckPagerDuty returns an error if the URL of an Events API is invalid. Nil: URLs are not checked.
	CheckPagerDuty func(address string) error
}

// Check returns the first problem of each invalid policy, alone and in combination with
// other policies. It does not check Secrets. Valid policies are not in the result.
func Check(policies []v1alpha1.PagingPolicy, hub Hub) map[types.NamespacedName]Problem {
	out := map[types.NamespacedName]Problem{}
	for i := range policies {
		p := &policies[i]
		for _, check := range []func() Problem{
			func() Problem { return hub.checkScope(p) },
			func() Problem { return hub.checkHours(p) },
			func() Problem { return checkReceivers(p) },
			func() Problem { return hub.checkURLs(p) },
			func() Problem { return checkUse(p) },
			func() Problem { return hub.checkConflicts(p, policies) },
		} {
			if problem := check(); problem.Reason != "" {
				out[types.NamespacedName{Namespace: p.Namespace, Name: p.Name}] = problem
				break
			}
		}
	}
	return out
}

// checkScope returns a problem if a policy with the scope Fleet is in another namespace than the hub's.
func (h Hub) checkScope(p *v1alpha1.PagingPolicy) Problem {
	if p.Spec.Scope == v1alpha1.PagingFleet && h.Namespace != "" && p.Namespace != h.Namespace {
		return Problem{
			v1alpha1.ReasonInvalidSpec,
			fmt.Sprintf("a policy with the scope Fleet must be in namespace %s: "+
				"create it there, or use the scope Namespace", h.Namespace),
		}
	}
	return Problem{}
}

// checkHours returns a problem if the hours or the time zone of tickets are invalid.
func (h Hub) checkHours(p *v1alpha1.PagingPolicy) Problem {
	if p.Spec.Tickets == nil || p.Spec.Tickets.Hours == nil {
		return Problem{}
	}
	if hours := p.Spec.Tickets.Hours; hours.Start == hours.End {
		return Problem{v1alpha1.ReasonInvalidSpec, fmt.Sprintf("tickets.hours: start and end are both %s: write "+
			"00:00 and 24:00 for the whole day", hours.Start)}
	}
	zone := p.Spec.Tickets.Hours.TimeZone
	if _, err := time.LoadLocation(zone); err != nil {
		return Problem{
			v1alpha1.ReasonInvalidSpec,
			fmt.Sprintf("tickets.hours.timeZone: there is no time zone %q: use a "+
				"name such as Europe/Berlin", zone),
		}
	}
	if h.Objects && zone != "" && zone != "UTC" { // AlertmanagerConfigs have no time zones
		return Problem{v1alpha1.ReasonInvalidSpec, ErrTimeZone.Error()}
	}
	return Problem{}
}

// checkReceivers checks each receiver of a policy, and the policy alone, with Alertmanager's loader, because an
// invalid policy must not block other policies. It also checks that all named receivers exist.
func checkReceivers(p *v1alpha1.PagingPolicy) Problem {
	policy := ToPolicy(p)
	for _, r := range p.Spec.Receivers {
		single := Policy{Namespace: p.Namespace, Name: p.Name, Spec: v1alpha1.PagingPolicySpec{
			Pages: v1alpha1.PageTarget{Receivers: []string{r.Name}}, Receivers: []v1alpha1.PagingReceiver{r}}}
		err := single.checkLoad()
		if err == nil && r.Email != nil {
			err = checkAddresses(r.Email)
		}
		if err != nil {
			return Problem{v1alpha1.ReasonInvalidSpec, fmt.Sprintf("receivers[%s]: Alertmanager cannot use it: %v",
				r.Name, err)}
		}
	}
	names := p.Spec.Pages.Receivers
	if policy.hasTickets() {
		names = slices.Concat(names, p.Spec.Tickets.Receivers)
	}
	if policy.Spec.ChangeEvents != nil {
		names = slices.Concat(names, p.Spec.ChangeEvents.Receivers)
	}
	for _, name := range names {
		if len(policy.findReceivers([]string{name})) == 0 {
			return Problem{v1alpha1.ReasonInvalidSpec, fmt.Sprintf("there is no receiver %q: use a name of receivers",
				name)}
		}
	}
	if err := policy.checkLoad(); err != nil {
		return Problem{v1alpha1.ReasonInvalidSpec, fmt.Sprintf("Alertmanager cannot use the policy: %v", err)}
	}
	return Problem{}
}

// checkURLs returns a problem if the URL of a PagerDuty receiver is invalid.
func (h Hub) checkURLs(p *v1alpha1.PagingPolicy) Problem {
	for _, r := range p.Spec.Receivers {
		if r.PagerDuty == nil || h.CheckPagerDuty == nil {
			continue
		}
		if err := h.CheckPagerDuty(r.PagerDuty.URL); err != nil {
			return Problem{v1alpha1.ReasonInvalidSpec, fmt.Sprintf("receivers[%s].pagerDuty.url: %v", r.Name, err)}
		}
	}
	return Problem{}
}

// checkUse repeats checks of the API, for users who check a policy before they apply it.
func checkUse(p *v1alpha1.PagingPolicy) Problem {
	policy := ToPolicy(p)
	switch {
	case !policy.IsFleet() && p.Spec.Heartbeat != nil:
		return Problem{v1alpha1.ReasonInvalidSpec, "only the policy with the scope Fleet has a heartbeat: remove " +
			"heartbeat"}
	case policy.IsFleet() && len(p.Spec.Operators)+len(p.Spec.Teams) > 0:
		return Problem{v1alpha1.ReasonInvalidSpec, "a policy with the scope Fleet is about whatever no other policy " +
			"selects: remove operators and teams"}
	}
	if p.Spec.ChangeEvents != nil {
		for _, r := range policy.findReceivers(p.Spec.ChangeEvents.Receivers) {
			if r.PagerDuty == nil {
				return Problem{v1alpha1.ReasonInvalidSpec, fmt.Sprintf("changeEvents: receiver %s is not PagerDuty, "+
					"and only PagerDuty accepts change events", r.Name)}
			}
		}
	}
	return policy.checkTickets()
}

// checkTickets returns a problem if the hours of tickets cannot work.
func (p Policy) checkTickets() Problem {
	if !p.hasTickets() || p.Spec.Tickets.Hours == nil {
		return Problem{}
	}
	for _, r := range p.findReceivers(p.Spec.Tickets.Receivers) {
		if r.PagerDuty != nil {
			return Problem{v1alpha1.ReasonInvalidSpec, fmt.Sprintf("tickets with hours cannot go to PagerDuty, which "+
				"receiver %s does: what resolves outside the hours would stay open there", r.Name)}
		}
	}
	return Problem{}
}

// checkLoad checks the configuration of the policy alone with Alertmanager's loader.
func (p Policy) checkLoad() error {
	p.Spec.Scope = v1alpha1.PagingFleet // Config requires a policy with this scope
	_, err := BuildConfig([]Policy{p}, "/")
	return err
}

// checkAddresses parses email addresses as Alertmanager does when it sends.
func checkAddresses(r *v1alpha1.EmailReceiver) error {
	if _, err := mail.ParseAddress(r.From); err != nil {
		return fmt.Errorf("from: %w", err)
	}
	if _, err := mail.ParseAddressList(r.To); err != nil {
		return fmt.Errorf("to: %w", err)
	}
	return nil
}

// checkConflicts returns a problem if another policy selects the same operators. Then neither policy is applied.
func (h Hub) checkConflicts(p *v1alpha1.PagingPolicy, policies []v1alpha1.PagingPolicy) Problem {
	policy := ToPolicy(p)
	for i := range policies {
		other := ToPolicy(&policies[i])
		// A policy that is being deleted or is in the wrong namespace is never applied, so it conflicts with none.
		if other.id() == policy.id() || policies[i].DeletionTimestamp != nil ||
			h.checkScope(&policies[i]).Reason != "" {
			continue
		}
		if policy.IsFleet() && other.IsFleet() {
			return Problem{
				v1alpha1.ReasonPolicyConflict,
				fmt.Sprintf("PagingPolicy %s has the scope Fleet too: keep one "+
					"of them", other.Name),
			}
		}
		shared := slices.IndexFunc(h.Operators, func(op Operator) bool {
			return policy.Selects(op) && other.Selects(op)
		})
		if shared >= 0 {
			return Problem{
				v1alpha1.ReasonPolicyConflict,
				fmt.Sprintf("PagingPolicy %s selects operator %s too: change "+
					"operators or teams of one of them", other.Name, h.Operators[shared].Name),
			}
		}
	}
	return Problem{}
}

// routingKey matches integration keys of PagerDuty's Events API v2.
var routingKey = regexp.MustCompile(`^[A-Za-z0-9]{32}$`)

// Trim removes the line break that editors and echo add to a secret.
func Trim(value []byte) []byte { return bytes.TrimSpace(value) }

// Check describes the problem of a value without quoting the value. It is empty if the value is valid.
func (f SecretFormat) Check(value []byte) string {
	text := string(Trim(value))
	switch {
	case text == "":
		return "is empty"
	case strings.ContainsAny(text, "\r\n"):
		return "has several lines"
	case f == FormatRoutingKey && !routingKey.MatchString(text):
		return fmt.Sprintf(
			"is no integration key of PagerDuty: it has %d characters, and must have 32 letters and digits",
			len(text),
		)
	case f == FormatURL:
		if u, err := url.Parse(text); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return "is no http or https URL"
		}
	}
	return ""
}
