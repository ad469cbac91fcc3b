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

// facts are what the prober's series say about a failure.
type facts struct {
	status      int
	codes       []int
	redirects   int
	regexFailed bool
	jsonFailed  bool
	// bodyBytes are those that were read of a body, once it is decompressed.
	bodyBytes float64
	// dnsAnswered says that a DNS server answered.
	dnsAnswered bool
	// health is the status that a gRPC server reports.
	health grpc_health_v1.HealthCheckResponse_ServingStatus
}

// explainFailure finds the reason of a failure from the logged error, the
// deadline and the series. It never depends on the text of a message.
func explainFailure(ctx context.Context, logged *errorLog, f facts) *plan.Failure {
	for _, step := range []func() *plan.Failure{
		func() *plan.Failure { return explainOwnError(logged.err) },
		func() *plan.Failure { return explainTimeout(ctx, logged.err) },
		func() *plan.Failure { return explainNetworkError(logged.err) },
		func() *plan.Failure { return explainAnswer(logged, f) },
	} {
		if failure := step(); failure != nil {
			return failure
		}
	}
	return &plan.Failure{Reason: v1alpha1.ReasonProtocolError,
		Message: cmp.Or(logged.text(), "the probe failed, and blackbox_exporter logged no reason")}
}

// explainOwnError explains the errors of this package.
func explainOwnError(err error) *plan.Failure {
	var body *http.MaxBytesError
	var tooLarge tooLargeError
	switch {
	case errors.Is(err, errAddressDenied):
		return &plan.Failure{Reason: v1alpha1.ReasonAddressRefused, Message: err.Error() +
			"; spec.allowPrivate does not change that: whoever runs the process that probes denies the address"}
	case errors.Is(err, errAddressRefused):
		return &plan.Failure{Reason: v1alpha1.ReasonAddressRefused, Message: err.Error() +
			"; set spec.allowPrivate to permit it"}
	case errors.As(err, &body):
		return &plan.Failure{Reason: v1alpha1.ReasonAnswerTooLarge, Message: tooLargeError{int(body.Limit)}.Error()}
	case errors.As(err, &tooLarge):
		return &plan.Failure{Reason: v1alpha1.ReasonAnswerTooLarge, Message: tooLarge.Error()}
	case errors.Is(err, errSpec):
		return &plan.Failure{Reason: v1alpha1.ReasonInvalidSpec, Message: err.Error()}
	}
	return nil
}

// explainTimeout explains runs that reached their deadline, which the error may
// not show.
func explainTimeout(ctx context.Context, err error) *plan.Failure {
	deadline, ok := ctx.Deadline()
	if ok && !time.Now().Before(deadline) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, os.ErrDeadlineExceeded) {
		return &plan.Failure{Reason: v1alpha1.ReasonTimedOut, Message: "no complete answer within spec.timeout"}
	}
	return nil
}

func explainNetworkError(err error) *plan.Failure {
	var (
		dns         *net.DNSError
		certificate *tls.CertificateVerificationError
		record      tls.RecordHeaderError
		alert       tls.AlertError
		unknown     x509.UnknownAuthorityError
		name        x509.HostnameError
		invalid     x509.CertificateInvalidError
		operation   *net.OpError
	)
	switch {
	case errors.As(err, &dns):
		return &plan.Failure{Reason: v1alpha1.ReasonDNSFailed, Message: err.Error()}
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, &certificate), errors.As(err, &record),
		errors.As(err, &alert),
		errors.As(err, &unknown), errors.As(err, &name), errors.As(err, &invalid):
		return &plan.Failure{Reason: v1alpha1.ReasonTLSFailed, Message: err.Error()}
	case errors.As(err, &operation) && operation.Op == "remote error": // an alert, such as "certificate required"
		return &plan.Failure{Reason: v1alpha1.ReasonTLSFailed, Message: err.Error()}
	case errors.As(err, &operation) && operation.Op == "dial":
		return &plan.Failure{Reason: v1alpha1.ReasonConnectFailed, Message: err.Error()}
	}
	return nil
}

func explainAnswer(logged *errorLog, f facts) *plan.Failure {
	switch {
	case f.redirects > maxRedirects:
		return &plan.Failure{Reason: v1alpha1.ReasonTooManyRedirects,
			Message: fmt.Sprintf("more than %d redirects followed", maxRedirects)}
	case f.status != 0 && !isAcceptedStatus(f):
		return &plan.Failure{Reason: v1alpha1.ReasonBadStatus,
			Message: fmt.Sprintf("the answer's status is %d %s", f.status, http.StatusText(f.status))}
	case f.regexFailed:
		return &plan.Failure{Reason: v1alpha1.ReasonBadAnswer,
			Message: "the answer does not match what the spec expects"}
	case f.jsonFailed:
		return &plan.Failure{Reason: v1alpha1.ReasonBadAnswer, Message: explainJSON(logged)}
	case f.dnsAnswered:
		return &plan.Failure{Reason: v1alpha1.ReasonBadAnswer, Message: logged.text()}
	case f.health != grpc_health_v1.HealthCheckResponse_UNKNOWN:
		return &plan.Failure{Reason: v1alpha1.ReasonNotServing, Message: "the server says " + f.health.String()}
	}
	return nil
}

func explainJSON(logged *errorLog) string {
	if logged.err != nil {
		return logged.text()
	}
	return "the expression spec.http.json is not true for the answer"
}

func isAcceptedStatus(f facts) bool {
	if len(f.codes) > 0 {
		return slices.Contains(f.codes, f.status)
	}
	return f.status >= 200 && f.status < 300
}
