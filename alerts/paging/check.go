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

// Problem is what is wrong with a PagingPolicy: a reason of its condition Ready, and what
// a person reads.
type Problem struct{ Reason, Message string }

// Hub is what policies are checked against.
type Hub struct {
	// Namespace that the policy with the scope Fleet has to be in; empty: any.
	Namespace string
	// Objects tells that AlertmanagerConfigs are made, which cannot say everything.
	Objects   bool
	Operators []Operator
	// CheckPagerDuty tells what is wrong with the URL of an Events API. Nil: nothing is.
	CheckPagerDuty func(address string) error
}

// Check says what is wrong with policies, alone and beside each other, without their
// Secrets. Those that are right are not in the result.
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

func (h Hub) checkScope(p *v1alpha1.PagingPolicy) Problem {
	if p.Spec.Scope == v1alpha1.PagingFleet && h.Namespace != "" && p.Namespace != h.Namespace {
		return Problem{
			v1alpha1.ReasonInvalidSpec,
			fmt.Sprintf("a policy with the scope Fleet has to be in namespace %s: "+
				"create it there, or use the scope Namespace", h.Namespace),
		}
	}
	return Problem{}
}

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
	if h.Objects && zone != "" && zone != "UTC" {
		return Problem{v1alpha1.ReasonInvalidSpec, ErrTimeZone.Error()}
	}
	return Problem{}
}

// checkReceivers has Alertmanager's loader read each receiver of a policy, and the policy
// alone: what Alertmanager refuses of one policy must not hold up the others.
func checkReceivers(p *v1alpha1.PagingPolicy) Problem {
	whole := PolicyOf(p)
	for _, r := range p.Spec.Receivers {
		one := Policy{Namespace: p.Namespace, Name: p.Name, Spec: v1alpha1.PagingPolicySpec{
			Pages: v1alpha1.PageTarget{Receivers: []string{r.Name}}, Receivers: []v1alpha1.PagingReceiver{r}}}
		err := one.load()
		if err == nil && r.Email != nil {
			err = checkAddresses(r.Email)
		}
		if err != nil {
			return Problem{v1alpha1.ReasonInvalidSpec, fmt.Sprintf("receivers[%s]: Alertmanager cannot use it: %v",
				r.Name, err)}
		}
	}
	names := p.Spec.Pages.Receivers
	if whole.hasTickets() {
		names = slices.Concat(names, p.Spec.Tickets.Receivers)
	}
	if whole.Spec.ChangeEvents != nil {
		names = slices.Concat(names, p.Spec.ChangeEvents.Receivers)
	}
	for _, name := range names {
		if len(whole.named([]string{name})) == 0 {
			return Problem{v1alpha1.ReasonInvalidSpec, fmt.Sprintf("there is no receiver %q: use a name of receivers",
				name)}
		}
	}
	if err := whole.load(); err != nil {
		return Problem{v1alpha1.ReasonInvalidSpec, fmt.Sprintf("Alertmanager cannot use the policy: %v", err)}
	}
	return Problem{}
}

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

// checkUse says what the API refuses too, for those who check a policy before they apply it.
func checkUse(p *v1alpha1.PagingPolicy) Problem {
	this := PolicyOf(p)
	switch {
	case !this.IsFleet() && p.Spec.Heartbeat != nil:
		return Problem{v1alpha1.ReasonInvalidSpec, "only the policy with the scope Fleet has a heartbeat: remove " +
			"heartbeat"}
	case this.IsFleet() && len(p.Spec.Operators)+len(p.Spec.Teams) > 0:
		return Problem{v1alpha1.ReasonInvalidSpec, "a policy with the scope Fleet is about whatever no other policy " +
			"selects: remove operators and teams"}
	}
	if p.Spec.ChangeEvents != nil {
		for _, r := range this.named(p.Spec.ChangeEvents.Receivers) {
			if r.PagerDuty == nil {
				return Problem{v1alpha1.ReasonInvalidSpec, fmt.Sprintf("changeEvents: receiver %s is not PagerDuty, "+
					"and nobody else takes change events", r.Name)}
			}
		}
	}
	return this.checkTickets()
}

// checkTickets says what is wrong with the hours of tickets.
func (p Policy) checkTickets() Problem {
	if !p.hasTickets() || p.Spec.Tickets.Hours == nil {
		return Problem{}
	}
	for _, r := range p.named(p.Spec.Tickets.Receivers) {
		if r.PagerDuty != nil {
			return Problem{v1alpha1.ReasonInvalidSpec, fmt.Sprintf("tickets with hours cannot go to PagerDuty, which "+
				"receiver %s does: what resolves outside the hours would stay open there", r.Name)}
		}
	}
	return Problem{}
}

// load has Alertmanager's loader read what is made of the policy alone.
func (p Policy) load() error {
	p.Spec.Scope = v1alpha1.PagingFleet
	_, err := Config([]Policy{p}, "/")
	return err
}

// checkAddresses reads addresses as Alertmanager does when it sends.
func checkAddresses(r *v1alpha1.EmailReceiver) error {
	if _, err := mail.ParseAddress(r.From); err != nil {
		return fmt.Errorf("from: %w", err)
	}
	if _, err := mail.ParseAddressList(r.To); err != nil {
		return fmt.Errorf("to: %w", err)
	}
	return nil
}

// checkConflicts finds another policy that selects the same: neither is applied.
func (h Hub) checkConflicts(p *v1alpha1.PagingPolicy, policies []v1alpha1.PagingPolicy) Problem {
	this := PolicyOf(p)
	for i := range policies {
		other := PolicyOf(&policies[i])
		if other.id() == this.id() || policies[i].DeletionTimestamp != nil || h.checkScope(&policies[i]).Reason != "" {
			continue
		}
		if this.IsFleet() && other.IsFleet() {
			return Problem{
				v1alpha1.ReasonPolicyConflict,
				fmt.Sprintf("PagingPolicy %s has the scope Fleet too: keep one "+
					"of them", other.Name),
			}
		}
		both := slices.IndexFunc(h.Operators, func(op Operator) bool { return this.Selects(op) && other.Selects(op) })
		if both >= 0 {
			return Problem{
				v1alpha1.ReasonPolicyConflict,
				fmt.Sprintf("PagingPolicy %s selects operator %s too: change "+
					"operators or teams of one of them", other.Name, h.Operators[both].Name),
			}
		}
	}
	return Problem{}
}

// routingKey is the form of integration keys of PagerDuty's Events API v2.
var routingKey = regexp.MustCompile(`^[A-Za-z0-9]{32}$`)

// Trim takes away the line break that editors and echo add to a secret.
func Trim(value []byte) []byte { return bytes.TrimSpace(value) }

// Check says what is wrong with a value, without the value; it is empty if nothing is.
func (f SecretFormat) Check(value []byte) string {
	text := string(Trim(value))
	switch {
	case text == "":
		return "is empty"
	case strings.ContainsAny(text, "\r\n"):
		return "has several lines"
	case f == FormatRoutingKey && !routingKey.MatchString(text):
		return fmt.Sprintf(
			"is no integration key of PagerDuty: it has %d characters, and has to have 32 letters and digits",
			len(text),
		)
	case f == FormatURL:
		if u, err := url.Parse(text); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return "is no http or https URL"
		}
	}
	return ""
}
