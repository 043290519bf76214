import { test } from 'tap'
import type { ServiceRoute } from './host-routes.ts'
import type { MadeRoutes } from './route-steps.ts'
import { afterSteps, isOfIPv6 } from './route-steps.ts'
import { serviceRouteOf, serviceRouteSteps } from './service-route.ts'

const range = 'fd00:10:96::/112'
const route: ServiceRoute = { range, source: 'fd00:7::1' }
const present = (...interfaces: readonly string[]) =>
  new Map([[range, interfaces.map((one) => ({ interface: one, range }))]])
const nothing: MadeRoutes = { routes: [], tunnelPeers: [] }

test('it leads to the range of Services, with the IPv6 InternalIP as the source', async (t) => {
  const own = { name: 'pi-1', podCIDR: '10.244.1.0/24', address: '192.168.1.5', segment: 's' }
  const ranges = { clusterCIDR: 'fd00:10:244::/56', serviceCIDR: 'FD00:10:96:0::/112' }
  const podCIDR = 'fd00:10:244:1::/64'
  t.same(serviceRouteOf(ranges, { ...own, ipv6: { podCIDR, address: 'fd00:7::1' } }), route)
  t.same(serviceRouteOf(ranges, { ...own, ipv6: { podCIDR } }), { range }, 'the node has none: the kernel chooses')
  t.equal(serviceRouteOf({ ...ranges, serviceCIDR: 'fd00::; x' }, own), undefined)
})

test('it is made where it is missing, changed with its source, and removed', async (t) => {
  const add = { step: 'addServiceRoute', route } as const
  const remove = { step: 'removeServiceRoute', route } as const
  t.same(serviceRouteSteps(route, [], new Map()), [add])
  for (const listed of ['lo', '*']) t.same(serviceRouteSteps(route, [route], present(listed)), [], listed)
  t.same(serviceRouteSteps(route, [route], new Map()), [add], 'somebody has removed it')
  t.same(serviceRouteSteps(route, [], present('eth0')), [add], 'a route of others comes first, and stays')
  const moved = { ...route, source: 'fd00:7::2' }
  t.same(serviceRouteSteps(moved, [route], present('lo')), [remove, { step: 'addServiceRoute', route: moved }])
  t.same(serviceRouteSteps(undefined, [route], present('lo')), [remove])
  t.same(serviceRouteSteps(undefined, [route], new Map()), [], 'it is gone already')
  t.same(serviceRouteSteps(undefined, [], present('lo')), [], 'that of another one')
  t.ok([add, remove].every(isOfIPv6))
  const made = afterSteps(nothing, [add], [])
  t.same(made.serviceRoutes, [route])
  t.equal(afterSteps(nothing, [add], [{ step: add }]).serviceRoutes, undefined, 'it failed')
  t.equal(afterSteps(made, [remove], []).serviceRoutes, undefined)
})
