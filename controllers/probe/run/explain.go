// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"time"

	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/probe/plan"
)

// maxRedirects is how many redirects the prober follows.
const maxRedirects = 10

// facts are what the prober's series say of a failure.
type facts struct {
	status    int
	codes     []int
	redirects int
	mismatch  bool
	// answered says that a DNS server answered.
	answered bool
	// health is what a gRPC server says of itself.
	health grpc_health_v1.HealthCheckResponse_ServingStatus
}

// explain names the reason of a failure: by the error that was heard, by the
// deadline, and by what the series say. It looks at no message's text.
func explain(ctx context.Context, heard *listener, f facts) *plan.Failure {
	for _, step := range []func() *plan.Failure{
		func() *plan.Failure { return own(heard.err) },
		func() *plan.Failure { return late(ctx, heard.err) },
		func() *plan.Failure { return network(heard.err) },
		func() *plan.Failure { return answered(heard, f) },
	} {
		if failure := step(); failure != nil {
			return failure
		}
	}
	return &plan.Failure{Reason: v1alpha1.ReasonProtocolError,
		Message: cmp.Or(heard.say(), "the probe failed without a reason")}
}

// own are the errors of this package.
func own(err error) *plan.Failure {
	var body *http.MaxBytesError
	switch {
	case errors.Is(err, errAddressRefused):
		return &plan.Failure{Reason: v1alpha1.ReasonAddressRefused, Message: err.Error() +
			"; spec.allowPrivate would permit it"}
	case errors.Is(err, errTooLarge), errors.As(err, &body):
		return &plan.Failure{Reason: v1alpha1.ReasonAnswerTooLarge,
			Message: fmt.Sprintf("the answer has more than %d KiB", maxBody>>10)}
	case errors.Is(err, errSpec):
		return &plan.Failure{Reason: v1alpha1.ReasonInvalidSpec, Message: err.Error()}
	}
	return nil
}

// late tells of a run that its deadline ended, which the error may not show yet.
func late(ctx context.Context, err error) *plan.Failure {
	deadline, ok := ctx.Deadline()
	if ok && !time.Now().Before(deadline) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, os.ErrDeadlineExceeded) {
		return &plan.Failure{Reason: v1alpha1.ReasonTimedOut, Message: "there was no whole answer in time"}
	}
	return nil
}

func network(err error) *plan.Failure {
	var (
		dns         *net.DNSError
		certificate *tls.CertificateVerificationError
		record      tls.RecordHeaderError
		alert       tls.AlertError
		unknown     x509.UnknownAuthorityError
		name        x509.HostnameError
		invalid     x509.CertificateInvalidError
		dial        *net.OpError
	)
	switch {
	case errors.As(err, &dns):
		return &plan.Failure{Reason: v1alpha1.ReasonDNSFailed, Message: err.Error()}
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, &certificate), errors.As(err, &record),
		errors.As(err, &alert),
		errors.As(err, &unknown), errors.As(err, &name), errors.As(err, &invalid):
		return &plan.Failure{Reason: v1alpha1.ReasonTLSFailed, Message: err.Error()}
	case errors.As(err, &dial) && dial.Op == "dial":
		return &plan.Failure{Reason: v1alpha1.ReasonConnectFailed, Message: err.Error()}
	}
	return nil
}

func answered(heard *listener, f facts) *plan.Failure {
	switch {
	case f.redirects > maxRedirects:
		return &plan.Failure{Reason: v1alpha1.ReasonTooManyRedirects,
			Message: fmt.Sprintf("more than %d redirects followed", maxRedirects)}
	case f.status != 0 && !good(f):
		return &plan.Failure{Reason: v1alpha1.ReasonBadStatus,
			Message: fmt.Sprintf("the answer's status is %d %s", f.status, http.StatusText(f.status))}
	case f.mismatch:
		return &plan.Failure{Reason: v1alpha1.ReasonBadAnswer,
			Message: "the answer does not match what the spec expects"}
	case f.answered:
		return &plan.Failure{Reason: v1alpha1.ReasonBadAnswer, Message: heard.say()}
	case f.health != grpc_health_v1.HealthCheckResponse_UNKNOWN:
		return &plan.Failure{Reason: v1alpha1.ReasonNotServing, Message: "the server says " + f.health.String()}
	}
	return nil
}

func good(f facts) bool {
	if len(f.codes) > 0 {
		return slices.Contains(f.codes, f.status)
	}
	return f.status >= 200 && f.status < 300
}
