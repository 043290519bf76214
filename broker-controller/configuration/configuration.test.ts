import { test } from 'tap'
import { decodeConfiguration } from '../../daemon/process/configuration-file.ts'
import { helpText } from '../../daemon/process/help-text.ts'
import { readControllerCommandLine } from '../commands/command-line.ts'
import { controllerProgram } from '../commands/command-table.ts'
import { defaultAutoscalerSettings } from '../controllers/autoscaling/horizontal-controller.ts'
import { defaultEventCleanup } from '../controllers/event-cleanup.ts'
import { defaultIngressSettings } from '../controllers/ingress/ingress-settings.ts'
import { defaultNodeCidrSettings } from '../controllers/node-cidr.ts'
import { defaultNodeLifecycleSettings } from '../controllers/node-lifecycle/node-lifecycle-settings.ts'
import { defaultTerminatedPodGCThreshold } from '../controllers/pods/pod-cleanup.ts'
import {
  ControllerConfigurationSchema,
  controllerConfiguration,
  emptyControllerConfiguration,
} from './configuration.ts'
import { anyAddress, serverNames } from './server-names.ts'

const header = 'apiVersion: bramble.dev/v1alpha1\nkind: ControllerConfiguration\n'

function configured(argv: readonly string[], yaml = '') {
  const read = readControllerCommandLine(argv)
  if (read.want !== 'run') throw new Error(read.want)
  const file = decodeConfiguration(`${header}${yaml}`, ControllerConfigurationSchema, 'test.yaml')
  return controllerConfiguration({ flags: read.flags, file, isTerminal: false })
}

test('without a word everything has Kubernetes’ default', async (t) => {
  const { flags } = { flags: readControllerCommandLine([]) }
  if (flags.want !== 'run') return t.fail()
  const defaults = controllerConfiguration({ flags: flags.flags, file: emptyControllerConfiguration, isTerminal: true })
  t.same(defaults.listen, { apiPort: 6443, mqttPort: 8883, bindAddress: undefined })
  t.same(defaults.log, { format: 'text', level: 'info' })
  t.same(defaults.nodeLifecycle, defaultNodeLifecycleSettings)
  t.equal(defaults.terminatedPodGCThreshold, defaultTerminatedPodGCThreshold)
  t.equal(defaults.eventLifetimeMs, defaultEventCleanup.lifetimeMs)
  t.same(defaults.nodeCidrs, defaultNodeCidrSettings)
  t.same(defaults.autoscaler, defaultAutoscalerSettings)
})

test('flags go before the file', async (t) => {
  const file = 'apiPort: 1\nmqttPort: 2\nhosts: [pi.example]\nlogLevel: warn\nnodeMonitorGracePeriod: 1m30s\n'
  const configuration = configured(['run', '--api-port', '0', '--host', '10.0.0.1', '--log-level', 'debug'], file)
  t.same(configuration.listen, { apiPort: 0, mqttPort: 2, bindAddress: undefined })
  t.same(configuration.hosts, ['10.0.0.1', 'pi.example'])
  t.equal(configuration.log.level, 'debug')
  t.equal(configuration.nodeLifecycle.nodeMonitorGracePeriodMs, 90_000)
})

test('the autoscaler has the settings of the file', async (t) => {
  const file = `
horizontalPodAutoscalerSyncPeriod: 30s
horizontalPodAutoscalerDownscaleStabilization: 1m
horizontalPodAutoscalerTolerance: 0.2
horizontalPodAutoscalerCPUInitializationPeriod: 2m
horizontalPodAutoscalerInitialReadinessDelay: 10s
`
  t.same(configured(['run'], file).autoscaler, {
    syncPeriodMs: 30_000,
    downscaleStabilizationMs: 60_000,
    tolerance: 0.2,
    cpuInitializationPeriodMs: 120_000,
    initialReadinessDelayMs: 10_000,
  })
})

test('nodes get addresses for pods from the range that is configured, or none', async (t) => {
  const range = { clusterCIDR: '172.30.0.0/18', nodeCIDRMaskSize: 26 }
  t.same(configured(['run'], 'clusterCIDR: 172.30.0.0/18\nnodeCIDRMaskSize: 26\n').nodeCidrs, range)
  t.equal(configured(['run'], 'allocateNodeCIDRs: false\nclusterCIDR: nonsense\n').nodeCidrs, undefined)
  const error = t.throws(() => configured(['run'], 'clusterCIDR: fd00::/64\n')) as { problems?: readonly string[] }
  t.match(error.problems, [/^clusterCIDR: "fd00::\/64" has no IPv4 range, .*: set it before .* \(like 10\.244/])
})

test('Services get their addresses from the range that is configured, which no pod has', async (t) => {
  t.equal(configured(['run'], '').serviceCIDR, '10.96.0.0/12')
  t.equal(configured(['run'], 'serviceCIDR: 172.16.0.0/20\n').serviceCIDR, '172.16.0.0/20')
  t.equal(
    configured(['run'], 'clusterCIDR: 10.100.0.0/16\n').serviceCIDR,
    '10.43.0.0/16',
    'the default avoids the pods',
  )
  t.equal(configured(['run'], 'clusterCIDR: 10.32.0.0/11\n').serviceCIDR, '10.96.0.0/12')
  const problems = (file: string) => {
    const error = t.throws(() => configured(['run'], file)) as { problems?: readonly string[] }
    return error.problems
  }
  t.match(problems('serviceCIDR: 10.0.0.0/8\n'), [/^serviceCIDR: "10.0.0.0\/8" must be an IPv4 range of \/12 to \/29/])
  t.same(problems('serviceCIDR: 10.244.8.0/24\n'), [
    'serviceCIDR: 10.244.8.0/24 must not overlap clusterCIDR 10.244.0.0/16',
  ])
  t.equal(configured(['run'], 'allocateNodeCIDRs: false\nserviceCIDR: 10.244.8.0/24\n').serviceCIDR, '10.244.8.0/24')
})

test('pods and Services have addresses of both IP families where both ranges are pairs with IPv4 first', async (t) => {
  const pairs = 'clusterCIDR: 10.244.0.0/16,FD00:10:244::/56\nserviceCIDR: "10.96.0.0/12, fd00:10:96::/112"\n'
  const ipv6 = { clusterCIDR: 'fd00:10:244::/56', serviceCIDR: 'fd00:10:96::/112' }
  const both = configured(['run'], `${pairs}podNetwork: routed\n`)
  t.match(both, { nodeCidrs: { clusterCIDR: '10.244.0.0/16' }, serviceCIDR: '10.96.0.0/12', ipv6 })
  t.match(both.podNetwork, { clusterCIDR: '10.244.0.0/16', serviceCIDR: '10.96.0.0/12', ipv6 })
  const single = configured(['run'], 'podNetwork: routed\n')
  t.equal(single.ipv6, undefined)
  t.notOk('ipv6' in (single.podNetwork ?? {}))
  const problems = (clusterCIDR: string, serviceCIDR: string, rest = 'podNetwork: routed') => {
    const file = `clusterCIDR: "${clusterCIDR}"\nserviceCIDR: "${serviceCIDR}"\n${rest}\n`
    return (t.throws(() => configured(['run'], file), file) as { problems?: readonly string[] }).problems
  }
  const [pods, services] = ['10.244.0.0/16,fd00:1::/56', '10.96.0.0/12,fd00:2::/112']
  t.same(problems(pods, services, 'podNetwork: node'), [
    'clusterCIDR: fd00:1::/56 needs podNetwork: routed, as an IPv6 range: set it, or remove the range',
  ])
  t.match(configured(['run'], `clusterCIDR: "${pods}"\nserviceCIDR: "${services}"\n`).podNetwork, { ipv6: {} })
  t.same(problems(pods, '10.96.0.0/12'), [
    'clusterCIDR has an IPv6 range and serviceCIDR has none: add one (like fd00:10:96::/112) or remove that of clusterCIDR',
  ])
  t.match(problems('10.244.0.0/16', services), [/^serviceCIDR has an IPv6 range and clusterCIDR has none/])
  t.match(problems(pods, 'fd00:2::/112'), [/^serviceCIDR: "fd00:2::\/112" has no IPv4 range/])
  t.match(problems('fd00:1::/56,10.244.0.0/16', services), [/^clusterCIDR: .* has IPv6 first, .*: change the order/])
  t.match(problems(`${pods},fd00:3::/56`, services), [/^clusterCIDR: .* must have at most one range of each/])
  t.match(problems('10.244.0.0/16,10.245.0.0/16', services), [/^clusterCIDR: .* must be an IPv4 range, or one of/])
  const size = /^clusterCIDR: .* must be an IPv6 range of \/48 to \/63, global or unique local \(like fd00/
  for (const range of ['fd00:1::/64', 'fd00::/47', 'fd00::1/56', 'fe80::/56', 'ff05::/56', '::/56']) {
    t.match(problems(`10.244.0.0/16,${range}`, services), [size], range)
  }
  for (const range of ['fd00:2::/107', 'fd00:2::/126']) {
    t.match(
      problems(pods, `10.96.0.0/12,${range}`),
      [/^serviceCIDR: .* must be an IPv6 range of \/108 to \/125/],
      range,
    )
  }
  t.same(problems(pods, '10.96.0.0/12,fd00:1:0:1::/112'), [
    'serviceCIDR: fd00:1:0:1::/112 must not overlap clusterCIDR fd00:1::/56',
  ])
})

test('the network of the fleet is on unless the configuration turns it off, or nodes have no ranges', async (t) => {
  t.match(configured(['run'], '').podNetwork, { clusterDomain: 'cluster.local' })
  t.equal(configured(['run'], 'allocateNodeCIDRs: false\n').podNetwork, undefined)
  t.equal(configured(['run'], 'podNetwork: node\nclusterDomain: fleet.example\n').podNetwork, undefined)
  const ranges = { clusterCIDR: '10.244.0.0/16', serviceCIDR: '10.96.0.0/12' }
  t.same(configured(['run'], 'podNetwork: routed\n').podNetwork, { ...ranges, clusterDomain: 'cluster.local' })
  t.match(configured(['run'], 'podNetwork: routed\nclusterDomain: fleet.example\n').podNetwork, {
    clusterDomain: 'fleet.example',
  })
  const encrypted = 'podNetwork: routed\npodNetworkTunnel: wireguard\n'
  t.same(configured(['run'], encrypted).podNetwork?.wireguard, { port: 51_871 })
  t.same(configured(['run'], `${encrypted}wireguardPort: 443\n`).podNetwork?.wireguard, { port: 443 })
  t.notOk('wireguard' in (configured(['run'], 'podNetwork: routed\npodNetworkTunnel: vxlan\n').podNetwork ?? {}))
  const problems = (text: string) => (t.throws(() => configured(['run'], text)) as { problems?: unknown }).problems
  t.match(problems('wireguardPort: 0\n'), [/^wireguardPort: 0 must be a port/])
  t.match(problems('clusterDomain: .local\n'), [/^clusterDomain: ".local" must be lower case letters/])
  t.same(problems('podNetwork: routed\nallocateNodeCIDRs: false\n'), [
    'podNetwork: routed needs an address range for each node: remove allocateNodeCIDRs: false, or set podNetwork: node',
  ])
})

test('the proxy of Ingresses has its settings, and needs a network', async (t) => {
  const routed = 'podNetwork: routed\n'
  t.equal(configured(['run'], routed).ingress, undefined)
  t.same(configured(['run'], `${routed}ingress: {}\n`).ingress, defaultIngressSettings)
  const fields = 'image: haproxy:3.2, httpsPort: 8443, defaultCertificate: certs/house, nodeSelector: {front: "yes"}'
  t.match(configured(['run'], `${routed}ingress: {${fields}}\n`).ingress, {
    image: 'haproxy:3.2',
    httpPort: 80,
    httpsPort: 8443,
    defaultCertificate: 'certs/house',
    nodeSelector: { front: 'yes' },
  })
  const problems = (text: string) => (t.throws(() => configured(['run'], text)) as { problems?: unknown }).problems
  t.same(configured(['run'], 'ingress: {}\n').ingress, defaultIngressSettings)
  t.same(problems('podNetwork: node\ningress: {}\n'), [
    'ingress needs podNetwork: routed, as the proxy reaches Services by their addresses: set it, or remove ingress',
  ])
  const wrong =
    'image: "a b", httpPort: 0, httpsPort: 0, defaultCertificate: house, memoryLimit: 1Mi, nodeSelector: {"a b": c}'
  t.match(problems(`${routed}ingress: {${wrong}}\n`), [
    'ingress.image: "a b" must be the name of an image',
    'ingress.httpPort: 0 must be from 1 to 65535',
    'ingress.httpsPort: 0 must be from 1 to 65535',
    'ingress.httpsPort: 0 must differ from httpPort',
    'ingress.defaultCertificate: "house" must be NAMESPACE/NAME of a Secret',
    'ingress.memoryLimit: "1Mi" must be a size of at least 32Mi (like 512Mi)',
    /^ingress.nodeSelector: /,
  ])
  t.match(problems(`${routed}ingress: {tolerations: [{}]}\n`), [/^ingress.tolerations\[0\].operator: /])
})

test('all problems are reported at once, each with its field', async (t) => {
  const flags = ['--bind-address', 'here', '--host', 'no_name']
  const file = 'apiPort: 70000\nnodeMonitorPeriod: soon\nunhealthyZoneThreshold: 2\n'
  const error = t.throws(() => configured(flags, file)) as { problems?: readonly string[] }
  t.same(error.problems, [
    'host "no_name" must be an IP address or a host name',
    'apiPort: 70000 must be a port, 0 to 65535',
    '--bind-address: "here" must be an IP address',
    'nodeMonitorPeriod: "soon" must be a duration of at least 100ms (like 10s or 5m)',
    'unhealthyZoneThreshold: 2 must be between 0 and 1',
  ])
  t.throws(() => configured([], 'conditionTaints: [kernel-deadlock]\n'), {
    message: /conditionTaints: "kernel-deadlock" must be the type of a condition/,
  })
  t.same(configured([], 'conditionTaints: [KernelDeadlock]\n').nodeLifecycle.conditionTaints, ['KernelDeadlock'])
  t.throws(() => configured([], 'nodeMonitorGracePeriode: 50s\n'), {
    message: /nodeMonitorGracePeriode: Unknown field/,
  })
})

test('the command line decides between running, checking, a command and a text', async (t) => {
  t.match(readControllerCommandLine(['--check']), { want: 'check' })
  for (const argv of [['--help'], ['help'], ['run', '--help']]) {
    t.match(readControllerCommandLine(argv), { want: 'help', text: /--data-dir .*--config .*--kubeconfig .*--check/s })
  }
  t.match(readControllerCommandLine(['--version']), { want: 'help', text: /^bramble-controller \d/ })
  t.match(readControllerCommandLine(['token', 'create', '--ttl', '1h']), {
    want: 'token',
    argv: ['create', '--ttl', '1h'],
  })
  const refused = {
    start: /^Unexpected "start": use run, token, .*\nTry 'bramble-controller --help'\.\n$/,
    '--api-prt': /--api-prt/,
    '--api-port=70000': /^Invalid value "70000" for --api-port: use a whole number from 0 to 65535\./,
    '--log-format=xml': /^Invalid value "xml" for --log-format: use one of json, text, journal\./,
  }
  for (const [argument, text] of Object.entries(refused)) {
    t.match(readControllerCommandLine([argument]), { want: 'refuse', text }, argument)
  }
})

test('every command of the table has its help and is completed', async (t) => {
  for (const [word, row] of Object.entries(controllerProgram.commands)) {
    t.match(helpText(row), `Usage: bramble-controller ${word}`)
  }
  const script = readControllerCommandLine(['completion', 'bash'])
  t.match(script, { want: 'help', text: /rollover.*--print-join-command/s })
  t.match(readControllerCommandLine(['completion', 'fish']), { want: 'refuse', text: /use bash/ })
})

test('a controller is known by every name and address of its machine', async (t) => {
  const address = (address: string, family: 'IPv4' | 'IPv6', internal = false) =>
    ({ address, family, internal, netmask: '', mac: '', cidr: null, scopeid: 0 }) as const
  const interfaces = {
    lo: [address('127.0.0.1', 'IPv4', true), address('::1', 'IPv6', true)],
    eth0: [address('fe80::1', 'IPv6'), address('fd00::5', 'IPv6'), address('192.168.1.5', 'IPv4')],
  }
  const machine = { hostname: 'Pi-Main', interfaces }
  const names = serverNames(machine, { advertiseAddress: undefined, hosts: ['fleet.example'] })
  t.same(names.all, ['localhost', '127.0.0.1', '::1', 'pi-main', 'fd00::5', '192.168.1.5', 'fleet.example'])
  t.equal(names.advertised, '192.168.1.5')
  t.equal(serverNames(machine, { advertiseAddress: 'fd00::9', hosts: [] }).advertised, '[fd00::9]')
  t.equal(
    serverNames({ hostname: 'alone', interfaces: {} }, { advertiseAddress: undefined, hosts: [] }).advertised,
    'alone',
  )
  const bound = serverNames(machine, { advertiseAddress: undefined, bindAddress: '127.1.2.3', hosts: [] })
  t.equal(bound.advertised, '127.1.2.3', 'no other address is listened on')
  t.ok(bound.all.includes('127.1.2.3'))
  const onAll = { advertiseAddress: undefined, bindAddress: '0.0.0.0', hosts: [] }
  t.equal(serverNames(machine, onAll).advertised, '192.168.1.5')
  t.same([anyAddress(machine), anyAddress({ interfaces: {} })], ['::', '0.0.0.0'])
})

test('with a network of pods the API has the names and the address of its Service', async (t) => {
  const addresses = { advertiseAddress: undefined, hosts: [] }
  const podNetwork = { serviceCIDR: '10.96.0.0/12', clusterDomain: 'fleet.example' }
  const { all } = serverNames({ hostname: 'alone', interfaces: {} }, { ...addresses, podNetwork })
  t.same(all.slice(-5), [
    '10.96.0.1',
    'kubernetes',
    'kubernetes.default',
    'kubernetes.default.svc',
    'kubernetes.default.svc.fleet.example',
  ])
})

test('the store is in etcd where its servers are given, by flags or by the file', async (t) => {
  t.equal(configured([]).etcd, undefined)
  const flags = ['--etcd-servers', 'https://a:2379,https://10.0.0.2', '--etcd-cafile', '/ca', '--etcd-certfile', '/c']
  t.same(configured([...flags, '--etcd-keyfile', '/k']).etcd, {
    servers: ['https://a:2379', 'https://10.0.0.2:2379'],
    ...{ caFile: '/ca', certFile: '/c', keyFile: '/k', prefix: '/bramble/default' },
  })
  const yaml = 'etcdServers: ["http://[::1]:4001"]\netcdPrefix: /fleets/north\n'
  t.match(configured([], yaml).etcd, { servers: ['http://[::1]:4001'], prefix: '/fleets/north', caFile: undefined })
  const quota = configured([], `${yaml}etcdQuotaBackendBytes: 8589934592\n`).etcd
  t.equal(quota?.quotaBytes, 8_589_934_592)
  t.match(configured(['--etcd-prefix', '/other'], yaml).etcd, { prefix: '/other' }, 'flags go before the file')
})

test('settings of etcd that cannot work are named with their value and what is expected', async (t) => {
  const problemsOf = (argv: readonly string[], yaml = '') => {
    try {
      configured(argv, yaml)
      return ''
    } catch (error) {
      return String(error instanceof Error && 'problems' in error ? error.problems : error)
    }
  }
  t.match(problemsOf(['--etcd-servers', 'a:2379']), /--etcd-servers: "a:2379" must be a URL like https:/)
  t.match(problemsOf(['--etcd-servers', 'https://a/v3']), /"https:\/\/a\/v3" must be a URL .* without a path/)
  t.match(problemsOf(['--etcd-servers', 'https://a,http://b']), /must be all https or all http/)
  t.match(
    problemsOf([], 'etcdServers: [http://a]\netcdQuotaBackendBytes: 8\n'),
    /etcdQuotaBackendBytes: 8 must be the --quota-backend-bytes of etcd, in bytes/,
  )
  t.match(problemsOf([], 'etcdServers: []\n'), /etcdServers: there must be at least one server/)
  t.match(problemsOf(['--etcd-cafile', '/ca']), /--etcd-cafile: it has no effect without etcdServers/)
  t.match(
    problemsOf(['--etcd-servers', 'http://a', '--etcd-cafile', '/ca']),
    /--etcd-cafile: it has no effect for servers of http/,
  )
  t.match(
    problemsOf(['--etcd-servers', 'https://a', '--etcd-certfile', '/c']),
    /--etcd-certfile and etcdKeyFile: one is given without/,
  )
  t.match(
    problemsOf(['--etcd-servers', 'https://a', '--etcd-prefix', 'fleet/']),
    /--etcd-prefix: "fleet\/" must be a path like/,
  )
})

test('the policy of pods is that of the file, and what is wrong with it is named with its field', async (t) => {
  t.equal(configured(['run']).podSecurity.defaults.enforce.level, 'privileged')
  const yaml =
    'podSecurity: {defaults: {enforce: baseline, enforce-version: v1.30}, exemptions: {namespaces: [kube-system]}}\n'
  const { defaults, exemptions } = configured(['run'], yaml).podSecurity
  t.same(defaults.enforce, { level: 'baseline', version: 30 })
  t.same([...exemptions.namespaces], ['kube-system'])
  const strict = 'podSecurity: {defaults: {enforce: strict}}\n'
  t.throws(() => configured(['run'], strict), /podSecurity\.defaults\.enforce: "strict" must be one of privileged, /)
  t.throws(
    () => configured(['run'], 'podSecurity: {defaults: {enforced: x}}\n'),
    /podSecurity\.defaults\.enforced: Unknown/,
  )
})

test('storeMaxSize bounds the store, and a namespace to a quarter of it', (t) => {
  const gibibyte = 2 ** 30
  t.same(configured([], '').storeLimits, { maxBytes: 2 * gibibyte, namespaceBytes: gibibyte / 2 })
  t.same(configured([], 'storeMaxSize: 512Mi\n').storeLimits, { maxBytes: gibibyte / 2, namespaceBytes: gibibyte / 8 })
  for (const wrong of ['15Mi', 'much']) {
    t.throws(() => configured([], `storeMaxSize: ${wrong}\n`), {
      message: /storeMaxSize: ".*" must be a quantity of at least 16Mi/,
    })
  }
  t.end()
})
