import { type Test, test } from 'tap'
import { cell } from '../../../daemon/cell.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { aService, endpointOn } from '../testing/services.ts'
import { healthCheckManager } from './health-check-manager.ts'
import type { HealthAnswer } from './health-checks.ts'
import type { ServiceRules } from './service-manager.ts'

const balanced = (...addresses: ReturnType<typeof endpointOn>[]) =>
  aService({ type: 'LoadBalancer', externalTrafficPolicy: 'Local', healthCheckNodePort: 31_000, addresses })
const rules = (...services: ReturnType<typeof balanced>[]): ServiceRules => ({
  chains: new Map(),
  sets: new Map(),
  services: new Map(services.map((one) => [one.name, one])),
})

function running(t: Test) {
  const world = { open: new Map<number, () => HealthAnswer>(), taken: new Set<number>() }
  const serviceRules = cell<ServiceRules | undefined>(undefined)
  const ruleProblem = cell<string | undefined>(undefined)
  const clock = fakeClock()
  const { run } = healthCheckManager({
    nodeName: 'pi-1',
    servers: {
      async open(port, answer) {
        if (world.taken.has(port)) throw new Error('EADDRINUSE')
        world.open.set(port, answer)
      },
      async close(port) {
        world.open.delete(port)
      },
    },
    reads: { serviceRules, ruleProblem },
    clock,
    log: quietLog(t, 'Cannot answer health checks of a Service'),
  })
  const end = new AbortController()
  const ended = run(end.signal)
  const stop = async () => {
    end.abort()
    await ended
  }
  t.teardown(stop)
  const use = async (...services: ReturnType<typeof balanced>[]) => {
    serviceRules.set(rules(...services))
    await clock.settle()
  }
  return { world, ruleProblem, clock, use, stop, answer: () => world.open.get(31_000)?.() }
}

test('a node with ready endpoints answers 200 with their number, as kube-proxy', async (t) => {
  const { use, answer } = running(t)
  await use(
    balanced(endpointOn('pi-1', '10.244.1.2'), endpointOn('pi-1', '10.244.1.3'), endpointOn('pi-2', '10.244.2.2')),
  )
  t.same(answer(), {
    status: 200,
    headers: {
      'Content-Type': 'application/json',
      'X-Content-Type-Options': 'nosniff',
      'X-Load-Balancing-Endpoint-Weight': '2',
    },
    body: `{
	"service": {
		"namespace": "shop",
		"name": "web"
	},
	"localEndpoints": 2,
	"serviceProxyHealthy": true
}`,
  })
})

test('a node without ready endpoints, or without its rules, answers 503', async (t) => {
  const { use, answer, ruleProblem } = running(t)
  await use(balanced(endpointOn('pi-2', '10.244.2.2'), endpointOn('pi-1', '10.244.1.2', { ready: false })))
  t.match(answer(), { status: 503, body: /"localEndpoints": 0/ })
  await use(balanced(endpointOn('pi-1', '10.244.1.2')))
  t.match(answer(), { status: 200 })
  ruleProblem.set('nft is not installed')
  t.match(answer(), { status: 503, body: /"serviceProxyHealthy": false/ })
})

test('ports close with their Service, and all of them at the end', async (t) => {
  const { world, use, stop } = running(t)
  await use(balanced())
  t.same([...world.open.keys()], [31_000])
  await use({ ...balanced(), healthCheckNodePort: 31_001 })
  t.same([...world.open.keys()], [31_001])
  await use({ ...balanced(), externalTrafficPolicy: 'Cluster' })
  t.same([...world.open.keys()], [])
  await use(balanced())
  await stop()
  t.same([...world.open.keys()], [])
})

test('a port that another program has is opened when it is free', async (t) => {
  const { world, use, clock } = running(t)
  world.taken.add(31_000)
  await use(balanced())
  t.equal(world.open.size, 0)
  world.taken.clear()
  await clock.advance(60_000)
  t.equal(world.open.size, 1)
})
