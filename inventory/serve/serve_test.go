// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/inventory"
)

var now = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

// echoing answers each query with its statement, its arguments and what the user sees.
type echoing struct{ err error }

func (e echoing) Query(_ context.Context, q inventory.Query) (*inventory.Answer, error) {
	return &inventory.Answer{Columns: []string{"sql", "arguments", "visible"}, At: q.At,
		Rows: [][]any{{q.SQL, fmt.Sprint(q.Arguments), fmt.Sprint(q.Visible.Namespaces)}}}, e.err
}

// anna is the only user.
type anna struct{}

func (anna) FindVisible(_ context.Context, token string) (inventory.Visible, error) {
	if token == "token-of-bert" {
		return inventory.Visible{}, nil
	}
	if token != "token-of-anna" {
		return inventory.Visible{}, ErrUnauthenticated
	}
	return inventory.Visible{Namespaces: []string{"team-a"}}, nil
}

// TestHandler sends requests, good ones and others.
func TestHandler(t *testing.T) {
	const path, token = inventory.QueryPath, "token-of-anna"
	for name, c := range map[string]struct {
		path, token, body string
		err               error
		status            int
		want              string
	}{
		"a statement": {path, token, `{"sql":"SELECT 1","arguments":{"a":"b"}}`, nil, 200,
			`"rows":[["SELECT 1","map[a:b]","[team-a]"]],"at":"2026-11-24T12:00:00Z"`},
		"an earlier time": {path, token, `{"sql":"SELECT 1","at":"2026-11-20T10:00:00+01:00"}`, nil,
			200, `"at":"2026-11-20T10:00:00+01:00"`},
		"a question": {path, token, `{"question":"on-cluster","arguments":{"cluster":"prod-1"}}`, nil,
			200, "map[cluster:prod-1]"},
		"a default": {path, token, `{"question":"approvals"}`, nil, 200, "map[since:2026-10-25T12:00:00Z]"},
		"a time that is none": {path, token, `{"question":"approvals","arguments":{"since":"-1 day"}}`,
			nil, 400, `the time \"-1 day\" cannot be read: use a time such as`},
		"nothing to see": {path, "token-of-bert", `{"question":"approvals"}`, nil, 403, "you see nothing"},
		"a missing argument": {path, token, `{"question":"on-cluster"}`, nil, 400,
			"the question on-cluster needs cluster=VALUE: name of the FleetCluster, such as cluster=prod-1"},
		"a superfluous argument": {path, token,
			`{"question":"versions","arguments":{"cluster":"a"}}`, nil, 400, `has no parameter \"cluster\"`},
		"an unknown question": {path, token, `{"question":"who"}`, nil, 400,
			`there is no question \"who\": the questions are who-ran, `},
		"nothing": {path, token, `{}`, nil, 400, "either a statement or the name of a question"},
		"both":    {path, token, `{"sql":"SELECT 1","question":"versions"}`, nil, 400, "either"},
		"the future": {path, token, `{"sql":"SELECT 1","at":"2027-01-01T00:00:00Z"}`, nil, 400,
			"is in the future"},
		"an unknown field": {path, token, `{"query":"SELECT 1"}`, nil, 400, "cannot be decoded"},
		"no JSON":          {path, token, `SELECT 1`, nil, 400, "cannot be decoded"},
		"a large request":  {path, token, `{"sql":"` + strings.Repeat("x", 300_000) + `"}`, nil, 400, "too large"},
		"no token":         {path, "", `{"sql":"SELECT 1"}`, nil, 401, "Authorization: Bearer TOKEN"},
		"another token":    {path, "other", `{"sql":"SELECT 1"}`, nil, 401, "unauthenticated"},
		"another path":     {"/", token, `{"sql":"SELECT 1"}`, nil, 404, "/v1/query by POST"},
		"a refusal": {path, token, `{"sql":"DROP"}`, fmt.Errorf("%w: no", inventory.ErrRefused), 400,
			"cannot be answered: no"},
		"another leader": {path, token, `{"sql":"SELECT 1"}`, ErrUnavailable, 503, "unavailable"},
		"a broken file":  {path, token, `{"sql":"SELECT 1"}`, context.DeadlineExceeded, 500, "deadline"},
	} {
		h := &Handler{Inventory: echoing{c.err}, Users: anna{}, Now: func() time.Time { return now }}
		request := httptest.NewRequest(http.MethodPost, c.path, strings.NewReader(c.body))
		if c.token != "" {
			request.Header.Set("Authorization", "Bearer "+c.token)
		}
		response := httptest.NewRecorder()
		h.ServeHTTP(response, request)
		if response.Code != c.status || !strings.Contains(response.Body.String(), c.want) {
			t.Errorf("%s: status %d, %s", name, response.Code, response.Body)
		}
		if !json.Valid(response.Body.Bytes()) {
			t.Errorf("%s: the answer is no JSON: %s", name, response.Body)
		}
	}
}

// apiServer is an API server that knows users by their tokens, and what they may list: "resource namespace".
type apiServer struct {
	mu      sync.Mutex
	users   map[string]string
	rights  map[string][]string
	reviews int
}

func (s *apiServer) client(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.reviews++
			switch review := o.(type) {
			case *authenticationv1.TokenReview:
				review.Status.User.Username = s.users[review.Spec.Token]
				review.Status.Authenticated = review.Status.User.Username != ""
			case *authorizationv1.SubjectAccessReview:
				a := review.Spec.ResourceAttributes
				for _, right := range s.rights[review.Spec.User] {
					if right == strings.TrimSpace(a.Verb+" "+a.Resource+"."+a.Group+" "+a.Namespace) {
						review.Status.Allowed = true
					}
				}
			}
			return nil
		}}).Build()
}

// TestReviewer reviews users, and reviews them again once their rights may have changed.
func TestReviewer(t *testing.T) {
	server := &apiServer{users: map[string]string{"1": "admin", "2": "anna"}, rights: map[string][]string{
		"admin": {"list fleetclusters.bellwether.dev", "list managedoperators.bellwether.dev"},
		"anna":  {"list managedoperators.bellwether.dev team-a", "list managedoperators.bellwether.dev elsewhere"}}}
	operator := func(namespace string) client.Object {
		return &v1alpha1.ManagedOperator{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "echo"}}
	}
	clock := now
	r := &Reviewer{Client: server.client(t, operator("team-a"), operator("team-b"),
		&v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: "a"}},
		&v1alpha1.FleetAccess{ObjectMeta: metav1.ObjectMeta{Name: "all"},
			Spec: v1alpha1.FleetAccessSpec{Namespaces: []string{"team-a"}}}), Now: func() time.Time { return clock }}
	find := func(token string, want inventory.Visible) {
		t.Helper()
		got, err := r.FindVisible(context.Background(), token)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("token %s (-want +got):\n%s", token, diff)
		}
	}
	find("1", inventory.Visible{AllClusters: true, AllNamespaces: true})
	team := inventory.Visible{Namespaces: []string{"team-a"}, Clusters: []string{"a"}}
	find("2", team)
	asked := server.reviews
	find("2", team)
	if server.reviews != asked {
		t.Errorf("%d reviews for an answer that is kept", server.reviews-asked)
	}
	for _, token := range []string{"3", strings.Repeat("x", 20_000)} {
		if _, err := r.FindVisible(context.Background(), token); err == nil ||
			findStatus(err) != http.StatusUnauthorized {
			t.Errorf("a token that nobody has: error %v", err)
		}
	}
	server.rights["anna"] = nil
	clock = clock.Add(rightsLifetime)
	find("2", inventory.Visible{})
	delete(server.users, "2")
	clock = clock.Add(rightsLifetime)
	if _, err := r.FindVisible(context.Background(), "2"); err == nil {
		t.Error("a revoked token is accepted")
	}
}
