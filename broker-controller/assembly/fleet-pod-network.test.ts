import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { openAuthority } from '../../certs/authority.ts'
import { issueServer } from '../../certs/issue.ts'
import { systemClock as clock } from '../../daemon/clock.ts'
import { ConfigurationError } from '../../daemon/process/configuration-file.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { testFolder } from '../../daemon/testing/test-folder.ts'
import { readControllerCommandLine } from '../commands/command-line.ts'
import {
  type ControllerConfigurationFile,
  controllerConfiguration,
  emptyControllerConfiguration,
} from '../configuration/configuration.ts'
import { memoryStore } from '../store/memory-store.ts'
import type { OpenedStore, Store } from '../store/store.ts'
import { ensureClusterInfo } from './bootstrap-objects.ts'
import { choosePodNetwork, type FleetRecord, verifyPodNetwork, withFleetPodNetwork } from './fleet-pod-network.ts'

const ranges = { clusterCIDR: '10.244.0.0/16', serviceCIDR: '10.96.0.0/12' }
const nothing: FleetRecord = { clusterInfo: undefined, hasNodes: false, before: undefined }

test('the configuration chooses the network of pods, else the fleet keeps its own, and a new one is routed', async (t) => {
  const cases: readonly [string, Parameters<typeof choosePodNetwork>[0], Partial<FleetRecord>, string, RegExp][] = [
    ['a new fleet', {}, {}, 'routed', /the fleet is new/],
    ['a new fleet without ranges for nodes', { allocateNodeCIDRs: false }, {}, 'node', /allocateNodeCIDRs is false/],
    ['a fleet of an early version', {}, { hasNodes: true }, 'node', /earlier version/],
    ['a fleet within nodes', {}, { clusterInfo: { caHash: 'sha256:00' }, hasNodes: true }, 'node', /cluster-info/],
    ['the same before its first node', {}, { clusterInfo: { caHash: 'sha256:00' } }, 'node', /cluster-info/],
    ['a routed fleet', {}, { clusterInfo: ranges, hasNodes: true }, 'routed', /cluster-info/],
    [
      'a routed fleet whose file turns it off',
      { podNetwork: 'node' },
      { clusterInfo: ranges },
      'node',
      /configuration/,
    ],
    ['a fleet whose file turns it on', { podNetwork: 'routed' }, { hasNodes: true }, 'routed', /configuration/],
    ['a lost store of a fleet within nodes', {}, { before: 'node' }, 'node', /before its store was lost/],
    ['a lost store of a routed fleet', {}, { before: 'routed' }, 'routed', /before its store was lost/],
    ['a backup', {}, { clusterInfo: {}, before: 'routed' }, 'node', /cluster-info/],
  ]
  for (const [name, file, record, podNetwork, because] of cases) {
    t.match(choosePodNetwork(file, { ...nothing, ...record }), { podNetwork, because }, name)
  }
})

test('a fleet keeps its network while the configuration does not name one, from the first start of its controller on', async (t) => {
  const { open, lead, store } = aController(t)
  t.match((await open()).podNetwork, ranges)
  await lead(await open())
  t.match((await open({ dashboard: false })).podNetwork, ranges)
  const off = await open({ podNetwork: 'node' })
  t.equal(off.podNetwork, undefined)
  await lead(off)
  const later = await open()
  t.equal(later.podNetwork, undefined)
  t.match(later.loadBalancer, { mode: 'none' })
  await store.create('nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name: 'pi-1' } })
  t.equal((await open()).podNetwork, undefined)
})

test('a fleet of an earlier version keeps pods within nodes, and the log has the choice with its reason', async (t) => {
  const { open, store, log } = aController(t)
  await store.create('nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name: 'pi-1' } })
  t.equal((await open()).podNetwork, undefined)
  t.match(log.lines, [{ message: 'Network of pods', facts: { podNetwork: 'node', because: /earlier version/ } }])
})

test('a configuration that needs the other network is refused, with the field, its value and a remedy', async (t) => {
  const { open, lead } = aController(t)
  await lead(await open({ podNetwork: 'node' }))
  const problems = async (file: Partial<ControllerConfigurationFile>) => {
    const error = await open(file).then(
      () => t.fail('refused'),
      (error: unknown) => error,
    )
    t.type(error, ConfigurationError)
    return String(error)
  }
  const needs = await problems({
    ingress: {},
    loadBalancerPool: ['192.168.1.240-192.168.1.250'],
    clusterCIDR: '10.244.0.0/16,fd00:10:244::/56',
    serviceCIDR: '10.96.0.0/12,fd00:10:96::/112',
  })
  t.match(needs, /conflicts with podNetwork: node \(the fleet has it, as kube-public\/cluster-info shows\):/)
  t.match(needs, /ingress needs podNetwork: routed, .*: set it, or remove ingress/)
  t.match(needs, /loadBalancerPool: 192\.168\.1\.240-192\.168\.1\.250 needs podNetwork: routed/)
  t.match(needs, /clusterCIDR: fd00:10:244::\/56 needs podNetwork: routed, .*: set it, or remove the range/)
  t.match((await open({ podNetwork: 'routed', ingress: {} })).ingress, { httpPort: 80 })
  await lead(await open({ podNetwork: 'routed' }))
  t.match(await problems({ allocateNodeCIDRs: false }), /remove allocateNodeCIDRs: false, or set podNetwork: node/)
})

test('beside the authority of a store that was lost, the certificate of the server shows the network of the fleet', async (t) => {
  for (const [names, isRouted] of [
    [['pi-main', 'kubernetes.default.svc'], true] as const,
    [['pi-main'], false] as const,
  ]) {
    const { open, dataDir } = aController(t, { acceptsCheckpoints: true })
    t.match((await open()).podNetwork, ranges, 'an authority that was made before the first start')
    const authority = await openAuthority(join(dataDir, 'authority'), clock.wallMs())
    const { certificate } = issueServer(authority, { names, nowMs: clock.wallMs() })
    writeFileSync(join(dataDir, 'server.crt'), `${certificate}${authority.certificate}`)
    t.equal((await open()).podNetwork !== undefined, isRouted, names.join())
    writeFileSync(join(dataDir, 'server.crt'), 'damaged')
    t.match((await open()).podNetwork, ranges)
  }
})

test('of controllers that start together the one that leads decides, and another one starts again before it leads', async (t) => {
  const { open, lead, needs, store } = aController(t)
  const standby = await open()
  await verifyPodNetwork({ ...needs({}), configuration: standby }, store)
  await lead(await open({ podNetwork: 'node' }))
  await t.rejects(verifyPodNetwork({ ...needs({}), configuration: standby }, store), {
    message: 'The fleet has podNetwork: node since this controller started with routed: start it again',
  })
  await verifyPodNetwork({ ...needs({}), configuration: await open() }, store)
  const routed = { podNetwork: 'routed' } as const
  await verifyPodNetwork({ ...needs(routed), configuration: await open(routed) }, store)
})

/** One controller on a store, as often as it is started. */
function aController(t: Test, { acceptsCheckpoints = false } = {}) {
  const store: Store = memoryStore({ clock })
  const dataDir = testFolder(t)
  const log = quietLog(t)
  const line = readControllerCommandLine(['run', '--data-dir', dataDir])
  if (line.want !== 'run') throw new Error(line.want)
  const { flags } = line
  const needs = (given: Partial<ControllerConfigurationFile>) => {
    const file = { ...emptyControllerConfiguration, ...given }
    const configuration = controllerConfiguration({ flags, file, isTerminal: false })
    return { configuration, file, flags, log, service: undefined }
  }
  const opened: Pick<OpenedStore, 'store' | 'origin'> = { store, origin: { id: 'one', acceptsCheckpoints } }
  return {
    store,
    dataDir,
    log,
    needs,
    open: async (file: Partial<ControllerConfigurationFile> = {}) => withFleetPodNetwork(needs(file), opened),
    lead: ({ podNetwork }: Awaited<ReturnType<typeof withFleetPodNetwork>>) =>
      ensureClusterInfo(
        { store, clock },
        { server: 'https://10.0.0.1:6443', mqttPort: 8883, trusted: 'PEM', caHash: 'sha256:00', ranges: podNetwork },
      ),
  }
}
