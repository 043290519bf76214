/** NetworkPolicies on two machines with engines of their own: which connections pods have, by the rules in the kernel. */
import { type Test, test } from 'tap'
import { agentLauncher } from './support/fleet.ts'
import { image } from './support/pods.ts'
import { type RoutedMachines, routedMachines, whyNoRoutedMachines } from './support/routed-machines.ts'
import { eventually } from './support/wait.ts'

const serving =
  'mkdir -p /www; for port in 80 81 8080; do httpd -p $port -h /www; done; trap "exit 0" TERM; while :; do sleep 0.1; done'

/** Port 80 is named `web`, in pod b port 81. */
const pod = (name: string, namespace: string, nodeName: string, command = serving) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace, labels: { app: name } },
  spec: {
    nodeName,
    terminationGracePeriodSeconds: 0,
    containers: [
      {
        ...{ name: 'main', image, command: ['sh', '-c', command] },
        ports: [{ name: 'web', containerPort: name === 'b' ? 81 : 80 }],
      },
    ],
  },
})
const policy = (name: string, spec: object, namespace = 'default') => ({
  apiVersion: 'networking.k8s.io/v1',
  kind: 'NetworkPolicy',
  metadata: { name, namespace },
  spec,
})
const service = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'x', namespace: 'other' },
  spec: { selector: { app: 'x' }, ports: [{ port: 700, targetPort: 8080 }] },
}
const app = (name: string) => ({ matchLabels: { app: name } })

/** a and c are on the first machine, b and x on the second one; x is in another namespace. */
async function world(t: Test) {
  const machines = await routedMachines(t)
  const { controller, first, second, inNetworkOf } = machines
  const agents = [await first.startAgent(), await second.startAgent()] as const
  await controller.nodesReady('pi-1', 'pi-2')
  const { kubectl } = controller
  const apply = (...items: readonly object[]) =>
    controller.kubectlWith(JSON.stringify({ apiVersion: 'v1', kind: 'List', items }), 'apply', '-f', '-')
  await kubectl('create', 'namespace', 'other')
  await kubectl('label', 'namespace', 'other', 'team=x')
  const places = [
    pod('a', 'default', 'pi-1'),
    pod('b', 'default', 'pi-2'),
    pod('c', 'default', 'pi-1'),
    pod('x', 'other', 'pi-2'),
  ]
  await apply(service, ...places)
  const addressOf = (name: string, namespace = 'default') =>
    eventually(`an address of ${name}`, async () => {
      const read = ['get', 'pod', name, '-n', namespace, '-o', 'jsonpath={.status.phase} {.status.podIP}']
      return /^Running ([\d.]+)$/.exec(await kubectl(...read))?.[1]
    })
  const ips = {
    a: await addressOf('a'),
    b: await addressOf('b'),
    c: await addressOf('c'),
    x: await addressOf('x', 'other'),
  }
  const serviceIP = (await kubectl('get', 'service', 'x', '-n', 'other', '-o', 'jsonpath={.spec.clusterIP}')).trim()
  const targetOf = (target: string): readonly [string, string] => {
    const [name = '', port = '80'] = target.split(':')
    if (name === 'service') return [serviceIP, '700']
    if (name === 'a' || name === 'b' || name === 'c' || name === 'x') return [ips[name], port]
    throw new Error(`${name} is not a pod`)
  }
  /** A line of the targets (`a`, `b:8080`, `service`) that accept a connection from a pod or a machine, in their order. */
  const reachedFrom = async (from: string, targets: string): Promise<string> => {
    const probe = (target: string) => {
      const [ip, port] = targetOf(target)
      return `(timeout 1 bash -c '</dev/tcp/${ip}/${port}' 2>/dev/null && echo ${target}) &`
    }
    const script = `${targets.split(' ').map(probe).join('\n')}\nwait`
    const space = from === 'pi-1' ? first : from === 'pi-2' ? second : undefined
    const { stdout } = space ? await space.tryRun('sh', '-c', script) : await inNetworkOf(from, script)
    const reached = new Set(stdout.trim().split('\n'))
    return targets
      .split(' ')
      .filter((target) => reached.has(target))
      .join(' ')
  }
  /** `[from, targets, those that are reached]`; until all are as expected. */
  const reach = async (t: Test, ...rows: readonly (readonly [from: string, targets: string, reached: string])[]) => {
    let found: readonly string[] = []
    const expected = rows.map(([from, targets, reached]) => `${from} of ${targets}: ${reached}`)
    await eventually(
      'the connections that are expected',
      async () => {
        found = await Promise.all(
          rows.map(async ([from, targets]) => `${from} of ${targets}: ${await reachedFrom(from, targets)}`),
        )
        return found.join('\n') === expected.join('\n')
      },
      { withinMs: 60_000 },
    ).catch(() => undefined)
    t.same(found, expected)
  }
  return { ...machines, agents, apply, ips, serviceIP, reach }
}

const all = 'a b c x'

test('network policies on two machines', { skip: whyNoRoutedMachines() }, async (t) => {
  const machines = await world(t)
  const { controller, first, agents, apply, ips, serviceIP, reach, within, inNetworkOf } = machines
  const { kubectl } = controller

  await t.test('without a policy each pod reaches all', (t) =>
    reach(t, ['a', all, all], ['b', all, all], ['c', all, all], ['x', all, all], ['pi-1', all, all]),
  )

  await t.test(
    'pods without allowed ingress are reached by themselves and their node, and keep what they have',
    async (t) => {
      const open = openConnection(machines, 'x', ips.a)
      await eventually('a connection that is open', () => isConnected(machines, 'x', ips.a))
      await apply(policy('ingress', { policyTypes: ['Ingress'] }))
      await reach(
        t,
        ...[['a', all, 'a x'] as const, ['b', all, 'b x'] as const, ['c', all, 'c x'] as const],
        ...[['x', all, 'x'] as const, ['pi-1', all, 'a c x'] as const, ['pi-2', all, 'b x'] as const],
      )
      t.match(await open(), /404 Not Found/)
    },
  )

  await t.test('peers are allowed by pods, by namespaces and both, at named ports', async (t) => {
    const from = [
      { podSelector: app('b') },
      { namespaceSelector: { matchLabels: { team: 'x' } }, podSelector: app('x') },
    ]
    const ports = [{ port: 'web' }]
    const matchExpressions = [{ key: 'app', operator: 'In', values: ['a', 'b'] }]
    await apply(policy('allow', { podSelector: { matchExpressions }, ingress: [{ from, ports }] }))
    await reach(t, ['b', 'a a:81 c', 'a'], ['x', 'a a:81 b b:81 c', 'a b:81'], ['c', 'a a:81 b b:81', ''])
    await kubectl('label', 'pod', 'c', '--overwrite', 'app=b')
    await reach(t, ['c', 'a a:81', 'a'])
    await kubectl('label', 'pod', 'c', '--overwrite', 'app=c')
    await reach(t, ['c', 'a a:81', ''])
  })

  await t.test('a policy that is changed and removed', async (t) => {
    await apply(policy('allow', { podSelector: app('a'), ingress: [{ from: [{ podSelector: app('c') }] }] }))
    await reach(t, ['c', 'a a:8080 b', 'a a:8080'], ['x', 'a b:81', ''])
    await kubectl('delete', 'networkpolicy', 'allow', 'ingress')
    await reach(t, ['c', all, all], ['x', all, all])
  })

  await t.test('egress is judged behind the address of a Service, and names resolve', async (t) => {
    const to = [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'other' } } }]
    await apply(
      policy('egress', { podSelector: app('c'), policyTypes: ['Egress'] }),
      policy('allow', {
        podSelector: app('c'),
        policyTypes: ['Egress'],
        egress: [{ to, ports: [{ port: 8000, endPort: 8090 }] }],
      }),
    )
    await reach(t, ['c', 'a b x x:8080 service', 'x:8080 service'], ['a', 'a b c x service', 'a b c x service'])
    await eventually('a name resolves', async () =>
      new RegExp(`Address: ${serviceIP}`).test((await within('c', 'nslookup x.other.svc.cluster.local')).stdout),
    )
    await kubectl('delete', 'networkpolicy', 'allow', 'egress')
  })

  await t.test('blocks of addresses except some, and named ports of the other end', async (t) => {
    const ipBlock = { cidr: ips.a.replace(/\d+\.\d+$/, '0.0/16'), except: [`${ips.a}/32`] }
    await apply(
      policy('block', { podSelector: {}, ingress: [{ from: [{ ipBlock }] }] }, 'other'),
      policy('named', { podSelector: app('a'), policyTypes: ['Egress'], egress: [{ ports: [{ port: 'web' }] }] }),
    )
    await reach(t, ['a', 'b b:81 c x', 'b:81 c'], ['b', 'b x', 'b x'], ['c', 'x', 'x'], ['pi-1', 'x', ''])
    await kubectl('delete', 'networkpolicy', 'named')
    await kubectl('delete', 'networkpolicy', 'block', '-n', 'other')
    await reach(t, ['a', 'b x', 'b x'])
  })

  await t.test('a new pod is isolated before its first packet', async (t) => {
    await apply(policy('late', { podSelector: app('late'), policyTypes: ['Ingress', 'Egress'] }))
    const line = `nc -w 1 ${ips.x} 80 </dev/null >/dev/null 2>&1 && echo reached || echo not reached`
    const script = `for i in 1 2 3; do ${line}; done; ${serving}`
    await apply(pod('late', 'default', 'pi-1', script))
    await eventually('three attempts', async () => (await kubectl('logs', 'late')).split('\n').length > 3)
    t.equal(await kubectl('logs', 'late'), 'not reached\nnot reached\nnot reached\n')
    const shown = await first.tryRun(agentLauncher, 'network', '--data-dir', first.dataDir)
    t.match(shown.stdout, /POD +ADDRESS +ISOLATED\ndefault\/late +[\d.]+ +ingress, egress\n/)
    await kubectl('delete', 'pod', 'late', '--force', '--grace-period=0')
  })

  await t.test('pods that give themselves IPv6 addresses reach nothing by them', async (t) => {
    const give = (ip: string) =>
      `sysctl -q -w net.ipv6.conf.eth0.disable_ipv6=0 && ip -6 address replace ${ip}/64 dev eth0 nodad && ip -6 address show eth0`
    const ping = async (from: string, ip: string) =>
      (await inNetworkOf(from, `ip -6 neighbour flush all; ping -6 -q -c 1 -W 1 ${ip}`)).code === 0
    for (const [name, ip] of [['a', 'fd00:7::a'] as const, ['c', 'fd00:7::c'] as const]) {
      t.match((await inNetworkOf(name, give(ip))).stdout, ip)
    }
    t.equal(await ping('a', 'fd00:7::c'), false)
    await eventually('without the rules they reach each other', async () => {
      // The agent may put them back before the packet is sent.
      await first.tryRun('nft', 'delete', 'table', 'ip6', 'bramble')
      return ping('a', 'fd00:7::c')
    })
    await eventually('rules that another program removed are back', async () => !(await ping('a', 'fd00:7::c')))
  })

  await t.test('after a reboot without a controller the policies of the checkpoint are in force', async (t) => {
    await apply(policy('ingress', { podSelector: app('a'), policyTypes: ['Ingress'] }))
    await reach(t, ['c', 'a b', 'b'], ['x', 'a', ''])
    await eventually('the checkpoint', async () => {
      const { stdout } = await inNetworkOf('a', `cat ${first.dataDir}/network/policies.json`)
      return stdout.includes('"name":"ingress"')
    })
    controller.program.kill('SIGKILL')
    agents[0].kill('SIGKILL')
    await agents[0].ended
    await first.run('nft', 'delete', 'table', 'ip', 'bramble')
    await first.startAgent()
    await reach(t, ['c', 'a b', 'b'], ['x', 'a', ''])
  })
})

/** Gives what an answer to a request is that is sent later on the same connection. */
function openConnection({ inNetworkOf, folder }: RoutedMachines, from: string, ip: string): () => Promise<string> {
  const go = `${folder}/go`
  const script = `exec 3<>/dev/tcp/${ip}/8080; until test -e ${go}; do sleep 0.1; done; printf 'GET /none HTTP/1.0\\r\\n\\r\\n' >&3; timeout 60 cat <&3`
  const answer = inNetworkOf(from, `bash -c "${script}"`)
  return async () => {
    await inNetworkOf(from, `touch ${go}`)
    return (await answer).stdout
  }
}

async function isConnected({ inNetworkOf }: RoutedMachines, from: string, ip: string): Promise<boolean> {
  return (await inNetworkOf(from, `ss -Htn state established dst ${ip}:8080`)).stdout.trim() !== ''
}
