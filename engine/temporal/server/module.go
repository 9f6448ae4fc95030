package server

import (
	"go.temporal.io/server/chasm"
	"go.temporal.io/server/common/clock"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/persistence/serialization"
	"go.temporal.io/server/common/pprof"
	"go.temporal.io/server/common/primitives"
	"go.temporal.io/server/common/resource"
	"go.temporal.io/server/service/history"
	"go.temporal.io/server/service/history/queues"
	"go.temporal.io/server/service/history/replication"
	"go.temporal.io/server/service/matching"
	"go.temporal.io/server/temporal"
	"go.uber.org/fx"
	"google.golang.org/grpc"
)

// module is [temporal.TopLevelModule] with services that know the host's clock, which the server has no
// option for.
func module(c *hostClock) fx.Option {
	historyService := func(params temporal.ServiceProviderParamsCommon) (temporal.ServicesGroupOut, error) {
		app := fx.New(
			params.GetCommonServiceOptions(primitives.HistoryService),
			history.QueueModule,
			history.Module,
			replication.Module,
			fx.Provide(func() queues.ExecutorWrapper { return c }),
			fx.Decorate(func(clock.TimeSource) clock.TimeSource { return c },
				func(all []grpc.UnaryServerInterceptor) []grpc.UnaryServerInterceptor {
					return append(all, c.rebase)
				}),
		)
		return temporal.NewService(app, primitives.HistoryService, params.Logger), app.Err()
	}
	matchingService := func(params temporal.ServiceProviderParamsCommon) (temporal.ServicesGroupOut, error) {
		app := fx.New(
			params.GetCommonServiceOptions(primitives.MatchingService),
			matching.Module,
			fx.Decorate(c.watchQueues),
		)
		return temporal.NewService(app, primitives.MatchingService, params.Logger), app.Err()
	}
	return fx.Options(
		fx.Provide(
			temporal.NewServerFxImpl,
			temporal.ServerOptionsProvider,
			resource.ArchivalMetadataProvider,
			temporal.TaskCategoryRegistryProvider,
			historyService,
			matchingService,
			temporal.FrontendServiceProvider,
			temporal.InternalFrontendServiceProvider,
			temporal.WorkerServiceProvider,
			temporal.ApplyClusterMetadataConfigProvider,
		),
		dynamicconfig.Module,
		pprof.Module,
		temporal.TraceExportModule,
		chasm.Module,
		serialization.Module,
		temporal.FxLogAdapter,
		fx.Invoke(temporal.ServerLifetimeHooks),
	)
}
