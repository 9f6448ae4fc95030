package webui

import (
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"github.com/labstack/echo/v4"
	"github.com/temporalio/ui-server/v2/server/api"
	"github.com/temporalio/ui-server/v2/server/config"
	"github.com/temporalio/ui-server/v2/server/route"
	"github.com/temporalio/ui-server/v2/ui"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/proto"
)

// pages returns the Web UI's pages and API. Requests end with ctx.
func pages(ctx context.Context, o Options) (http.Handler, error) {
	settings, err := config.NewConfigProviderWithRefresh(&config.Config{DefaultNamespace: o.Of.Name,
		DisableNewsFetch: true, DisableWriteActions: o.ReadOnly})
	if err != nil {
		return nil, err
	}
	assets, err := ui.Assets()
	if err == nil {
		assets, err = fs.Sub(assets, "local")
	}
	if err != nil {
		return nil, err
	}
	calls, err := gateway(ctx, o)
	if err != nil {
		return nil, err
	}
	e := echo.New()
	e.Logger.SetOutput(io.Discard)
	e.Use(endWith(ctx))
	g := e.Group("/api/v1", route.DisableWriteMiddleware(settings))
	g.GET("/settings", api.GetSettings(settings))
	g.GET("/releases", api.GetLatestReleases(settings, api.NewReleaseChecker()))
	g.GET("/ui-extensions", api.GetUIExtensions(settings, nil))
	g.GET(api.WorkflowRawHistoryUrl, api.WorkflowRawHistoryHandler(o.Client.WorkflowService()))
	g.Any("/*", echo.WrapHandler(calls))
	route.SetRenderRoute(e, "/")
	return e, route.SetUIRoutes(e, "", assets, settings)
}

// endWith ends requests with ctx: a page that waits for events would otherwise delay the end of the server.
func endWith(ctx context.Context) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			request, cancel := context.WithCancel(c.Request().Context())
			defer cancel()
			defer context.AfterFunc(ctx, cancel)()
			c.SetRequest(c.Request().WithContext(request))
			return next(c)
		}
	}
}

// gateway translates requests to calls of the client. The handler of ui-server does the same with a
// connection of its own.
func gateway(ctx context.Context, o Options) (http.Handler, error) {
	mux := runtime.NewServeMux(
		runtime.WithMarshalerOption(runtime.MIMEWildcard, marshaler{&runtime.JSONPb{}}),
		runtime.WithUnescapingMode(runtime.UnescapingModeAllExceptReserved),
		runtime.WithErrorHandler(func(ctx context.Context, mux *runtime.ServeMux, m runtime.Marshaler,
			w http.ResponseWriter, r *http.Request, err error,
		) {
			runtime.DefaultHTTPErrorHandler(ctx, mux, m, w, r, serviceerror.ToStatus(err).Err())
		}))
	err := workflowservice.RegisterWorkflowServiceHandlerClient(ctx, mux, o.Client.WorkflowService())
	if err == nil {
		err = operatorservice.RegisterOperatorServiceHandlerClient(ctx, mux, o.Client.OperatorService())
	}
	return mux, err
}

// marshaler translates messages as Temporal's API does, which also reads its older names of enums.
type marshaler struct{ *runtime.JSONPb }

func (m marshaler) Marshal(v any) ([]byte, error) {
	if msg, ok := v.(proto.Message); ok {
		return temporalproto.CustomJSONMarshalOptions{}.Marshal(msg)
	}
	return m.JSONPb.Marshal(v)
}

func (m marshaler) Unmarshal(data []byte, v any) error {
	if msg, ok := v.(proto.Message); ok {
		return temporalproto.CustomJSONUnmarshalOptions{}.Unmarshal(data, msg)
	}
	return m.JSONPb.Unmarshal(data, v)
}

func (m marshaler) NewDecoder(r io.Reader) runtime.Decoder {
	in := json.NewDecoder(r)
	return runtime.DecoderFunc(func(v any) error {
		var data json.RawMessage
		if err := in.Decode(&data); err != nil {
			return err
		}
		return m.Unmarshal(data, v)
	})
}
