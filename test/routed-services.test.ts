/** Services on two machines with engines of their own: controller, agents, Docker and the kernel's rules. */
import { test } from 'tap'
import { freePort } from '../agent/testing/free-port.ts'
import { type Asked, type EndpointProgram, endpointProgram } from './support/endpoint-programs.ts'
import { agentLauncher } from './support/fleet.ts'
import { whyNoFlows } from './support/own-space.ts'
import { image } from './support/pods.ts'
import { routedMachines, whyNoRoutedMachines } from './support/routed-machines.ts'
import { eventually } from './support/wait.ts'

/** `/cgi-bin/who` answers with the name of the pod and the address that it sees. On SIGTERM it serves until all nodes have received that it leaves. */
const script = `
mkdir -p /www/cgi-bin && hostname > /www/name
printf '#!/bin/sh\\necho; echo $(hostname) $REMOTE_ADDR\\n' > /www/cgi-bin/who && chmod +x /www/cgi-bin/who
httpd -f -p 0.0.0.0:8080 -h /www &
trap 'sleep 15; exit 0' TERM
wait`
const container = {
  name: 'main',
  image,
  command: ['sh', '-c', script],
  readinessProbe: { httpGet: { path: '/name', port: 8080 }, periodSeconds: 1, timeoutSeconds: 10 },
}
const labels = { app: 'web' }
const who = '/cgi-bin/who'
/** Timeout of a request that is answered: a busy machine takes seconds to start the program that answers. */
const patienceMs = 10_000

const podOn = (name: string, nodeName: string, spec: object = {}) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, labels },
  spec: { nodeName, terminationGracePeriodSeconds: 20, containers: [container], ...spec },
})
const webService = (spec: object = {}) => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'web' },
  spec: { selector: labels, ports: [{ port: 80, targetPort: 8080, nodePort: 30080 }], type: 'NodePort', ...spec },
})

test('Services on two machines', { skip: whyNoRoutedMachines() }, async (t) => {
  const fleet = await routedMachines(t)
  const { controller, first, second, stranger, within } = fleet
  const firstAgent = await first.startAgent()
  const secondAgent = await second.startAgent()
  await controller.nodesReady('pi-1', 'pi-2')
  const { kubectl } = controller
  const apply = (object: object) => controller.kubectlWith(JSON.stringify(object), 'apply', '-f', '-')
  await apply(podOn('a', 'pi-1'))
  await apply(podOn('b', 'pi-2'))
  await apply(webService())
  await kubectl('wait', '--for=condition=Ready', 'pod/a', 'pod/b', '--timeout=120s')
  const ipOf = async (pod: string) => (await kubectl('get', 'pod', pod, '-o', 'jsonpath={.status.podIP}')).trim()
  const [ipA, ipB] = [await ipOf('a'), await ipOf('b')]
  const bridgeOf = (ip: string) => ip.replace(/\d+$/, '1')
  const addressOf = async (name: string) =>
    (await kubectl('get', 'service', name, '-o', 'jsonpath={.spec.clusterIP}')).trim()
  const clusterIP = await addressOf('web')
  const onFirst = endpointProgram(t, 'first', first.space)
  const onSecond = endpointProgram(t, 'second', second.space)
  const outside = endpointProgram(t, 'stranger', stranger.space)
  const service: Asked = { address: clusterIP, port: 80, path: who }
  const nodePort = ({ address }: { readonly address: string }): Asked => ({ address, port: 30080, path: who })

  /** The answers that differ, of `times`. */
  const fromPod = async (pod: string, { address, port }: Asked, times = 12) => {
    const one = `timeout ${patienceMs / 1000} wget -q -O - http://${address}:${port}${who} 2>&1 || echo failed`
    const { stdout } = await within(pod, `for i in $(seq ${times}); do ${one}; done`)
    return [...new Set(stdout.trim().split('\n'))].sort()
  }
  const fromHost = async (host: EndpointProgram, asked: Asked, times = 12) =>
    [...new Set(await host.ask({ patienceMs, ...asked, times }))].sort()
  /** Until the last changes have come to the nodes. */
  const settles = (host: EndpointProgram, asked: Asked, pattern: RegExp) =>
    eventually(`${pattern} in answers`, async () =>
      pattern.test((await fromHost(host, { ...asked, patienceMs: 1_500 })).join()),
    )
  const settlesIn = (pod: string, asked: Asked, pattern: RegExp) =>
    eventually(`${pattern} in answers to ${pod}`, async () => pattern.test((await fromPod(pod, asked)).join()))
  const patch = (name: string, spec: object) => kubectl('patch', 'service', name, '-p', JSON.stringify({ spec }))

  await settles(onFirst, service, /^a .*,b /)
  await settles(onSecond, service, /^a .*,b /)

  await t.test('pods reach the endpoints on both machines by the ClusterIP, and keep their addresses', async (t) => {
    t.same(await fromPod('a', service, 20), [`a ${bridgeOf(ipA)}`, `b ${ipA}`])
    t.same(await fromPod('b', service, 20), [`a ${ipB}`, `b ${bridgeOf(ipB)}`])
  })

  await t.test('the agent shows the path to a Service by its name', async (t) => {
    const ends = [`${ipA}:8080 +pi-1 +yes +this node`, `${ipB}:8080 +pi-2 +yes +route by ${second.address}`]
    const shown = await first.run(agentLauncher, 'network', 'web.default', '--data-dir', first.dataDir)
    t.match(shown, new RegExp(`^web.default: Service default/web, address ${clusterIP}\n`))
    for (const end of ends) t.match(shown, new RegExp(`80/TCP +${end}\n`))
    t.notMatch(shown, /checkpoint/)
    const none = await first.tryRun(agentLauncher, 'network', 'no.such', '--data-dir', first.dataDir)
    t.match(none, { code: 1, stderr: /^no\.such is not a Service, node or address/ })
  })

  await t.test('nodes reach them by the ClusterIP too', async (t) => {
    t.same(await fromHost(onFirst, service, 20), [`a ${bridgeOf(ipA)}`, `b ${first.address}`])
    t.same(await fromHost(onSecond, service, 20), [`a ${second.address}`, `b ${bridgeOf(ipB)}`])
  })

  await t.test('a NodePort of each node answers for a stranger, for pods and for nodes', async (t) => {
    t.same(await fromHost(outside, nodePort(first), 20), [`a ${bridgeOf(ipA)}`, `b ${first.address}`])
    t.same(await fromHost(outside, nodePort(second), 20), [`a ${second.address}`, `b ${bridgeOf(ipB)}`])
    t.same(await fromPod('a', nodePort(second), 20), [`a ${second.address}`, `b ${bridgeOf(ipB)}`])
    t.same(await fromPod('a', nodePort(first), 20), [`a ${bridgeOf(ipA)}`, `b ${first.address}`])
    t.same(await fromHost(onFirst, nodePort(second), 20), [`a ${second.address}`, `b ${bridgeOf(ipB)}`])
  })

  await t.test('a Local NodePort keeps the address of a stranger', async (t) => {
    await patch('web', { externalTrafficPolicy: 'Local' })
    await settles(outside, nodePort(first), /^a [^,]*$/)
    await settles(outside, nodePort(second), /^b [^,]*$/)
    t.same(await fromHost(outside, nodePort(first)), [`a ${stranger.address}`])
    t.same(await fromHost(outside, nodePort(second)), [`b ${stranger.address}`])
    await patch('web', { externalTrafficPolicy: 'Cluster' })
  })

  await t.test('without endpoints connections are refused at once', async (t) => {
    await apply({
      ...webService({ selector: { app: 'none' }, type: 'ClusterIP', ports: [{ port: 80 }] }),
      metadata: { name: 'none' },
    })
    const none: Asked = { address: await addressOf('none'), port: 80, path: who }
    await settles(onFirst, none, /^ECONNREFUSED$/)
    t.match((await fromPod('a', none, 2)).join(), /refused/)
  })

  await t.test('trafficDistribution keeps connections within the zone of their node while it can', async (t) => {
    const zone = 'topology.kubernetes.io/zone'
    await kubectl('label', 'node', 'pi-1', `${zone}=east`)
    await kubectl('label', 'node', 'pi-2', `${zone}=west`)
    await apply({ ...podOn('c', 'pi-1'), metadata: { name: 'c', labels: { near: 'yes' } } })
    await kubectl('label', 'pod', 'a', 'b', 'near=yes')
    await kubectl('wait', '--for=condition=Ready', 'pod/c', '--timeout=120s')
    const spec = { selector: { near: 'yes' }, type: 'ClusterIP', ports: [{ port: 80, targetPort: 8080 }] }
    await apply({ ...webService(spec), metadata: { name: 'near' } })
    const near: Asked = { address: await addressOf('near'), port: 80, path: who }
    const namesFrom = async (pod: string) => (await fromPod(pod, near, 20)).map((answer) => answer.split(' ')[0])
    const [onlyB, both, all] = [/^b [^,]*$/, /^a [^,]*,c [^,]*$/, /^a .*,b .*,c /]
    await settles(onSecond, near, all)

    await patch('near', { trafficDistribution: 'PreferClose' })
    await settles(onFirst, near, both)
    await settles(onSecond, near, onlyB)
    t.same([await namesFrom('a'), await namesFrom('b')], [['a', 'c'], ['b']], 'endpoints of the zone')

    await within('b', 'rm /www/name')
    await settles(onSecond, near, both)
    t.same(await namesFrom('b'), ['a', 'c'], 'those of other zones while none of it is ready')
    await within('b', 'hostname > /www/name')
    await settles(onSecond, near, onlyB)

    await kubectl('label', 'pod', 'b', 'near-')
    await settles(onSecond, near, both)
    t.same(await namesFrom('b'), ['a', 'c'], 'those of other zones where it has none')
    t.same(await namesFrom('a'), ['a', 'c'])
    await kubectl('delete', 'service/near', 'pod/c')
    await kubectl('label', 'pod', 'a', 'near-')
    await kubectl('label', 'node', 'pi-1', 'pi-2', `${zone}-`)
  })

  await t.test('a flow of UDP to an endpoint that is gone goes to another one', { skip: whyNoFlows() }, async (t) => {
    const [port, nodePortNumber] = [9_000, 30_090]
    for (const host of [onFirst, onSecond]) await host.listen(port, 'udp')
    const ports = [{ port, protocol: 'UDP', nodePort: nodePortNumber }]
    await apply({ apiVersion: 'v1', kind: 'Service', metadata: { name: 'flows' }, spec: { type: 'NodePort', ports } })
    const leadTo = (...machines: readonly { readonly name: string; readonly address: string }[]) =>
      apply({
        apiVersion: 'discovery.k8s.io/v1',
        kind: 'EndpointSlice',
        metadata: { name: 'flows-1', labels: { 'kubernetes.io/service-name': 'flows' } },
        addressType: 'IPv4',
        ports: [{ port, protocol: 'UDP' }],
        endpoints: machines.map(({ name, address }) => ({ addresses: [address], nodeName: name })),
      })
    await leadTo(first, second)
    const asked: Asked = { protocol: 'udp', address: first.address, port: nodePortNumber }
    await settles(outside, asked, /^first .*,second /)
    const flow = { ...asked, fromPort: 40_053 }
    const nameOf = async () => (await outside.ask(flow)).join().split(' ')[0]
    const chosen = await nameOf()
    t.equal(await nameOf(), chosen, 'it stays with its endpoint')
    await leadTo(...(chosen === 'first' ? [second] : [first]))
    const other = chosen === 'first' ? 'second' : 'first'
    await eventually('the same flow is answered by the other one', async () => (await nameOf()) === other)
    await kubectl('delete', 'service', 'flows')
  })

  await t.test('an external IP answers where it leads to a node', async (t) => {
    await patch('web', { externalIPs: ['192.0.2.7'] })
    await stranger.run('ip', 'route', 'add', '192.0.2.7/32', 'via', first.address)
    const external: Asked = { address: '192.0.2.7', port: 80, path: who }
    await settles(outside, external, /^a .*,b /)
    await settlesIn('b', external, /^a .*,b /)
    t.same(await fromPod('b', external, 20), [`a ${second.address}`, `b ${bridgeOf(ipB)}`])
    await patch('web', { externalIPs: null })
  })

  await t.test(
    'pods are given the address of the API’s Service, and its certificate has that and its names',
    async (t) => {
      const api = await addressOf('kubernetes')
      await apply({ ...podOn('client', 'pi-2'), metadata: { name: 'client' } })
      await kubectl('wait', '--for=condition=Ready', 'pod/client', '--timeout=120s')
      const { stdout } = await within('client', 'echo $KUBERNETES_SERVICE_HOST $KUBERNETES_SERVICE_PORT')
      t.equal(stdout.trim(), `${api} 443`)
      const ca = await kubectl('get', 'configmap', 'kube-root-ca.crt', '-o', 'jsonpath={.data.ca\\.crt}')
      const ask = `
      const options = { host: '${api}', port: 443, ca: process.argv[1] }
      const socket = require('node:tls').connect({ ...options, servername: 'kubernetes.default.svc.cluster.local' }, () => {
        console.log(socket.authorized, require('node:tls').checkServerIdentity('${api}', socket.getPeerCertificate()))
        socket.destroy()
      })`
      t.equal((await second.run(process.execPath, '-e', ask, '--', ca)).trim(), 'true undefined')
    },
  )

  await t.test('a device that is not a node answers behind a Service, also for a stranger', async (t) => {
    const port = await freePort()
    const device = endpointProgram(t, 'device', undefined)
    await device.listen(port)
    const metadata = { name: 'device', labels: { 'kubernetes.io/service-name': 'device' } }
    await apply({
      ...webService({ selector: undefined, ports: [{ port: 80, targetPort: port, nodePort: 30082 }] }),
      metadata,
    })
    await apply({
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata,
      addressType: 'IPv4',
      ports: [{ port, protocol: 'TCP', name: '' }],
      endpoints: [{ addresses: [fleet.network.hostAddress], conditions: { ready: true } }],
    })
    const byNode = { address: second.address, port: 30082 }
    await settles(outside, byNode, /^device /)
    t.same(await fromHost(outside, byNode), [`device ${second.address}`])
    const asked = `timeout 5 nc ${await addressOf('device')} 80`
    const answer = await eventually(
      'an answer on the other node, whose rules may come later',
      async () => (await within('a', asked)).stdout.trim() || undefined,
    )
    t.equal(answer, `device ${first.address}`)
  })

  await t.test('100 of 100 connections arrive in each direction', async (t) => {
    const times = 100
    const ipClient = await ipOf('client')
    const pods = { a: { address: ipA, port: 8080, path: who }, b: { address: ipB, port: 8080, path: who } }
    const clients = [
      { ask: (asked: Asked, count: number) => fromPod('client', asked, count), own: ipClient, other: ipClient },
      {
        ask: (asked: Asked, count: number) => fromHost(onSecond, asked, count),
        own: bridgeOf(ipB),
        other: second.address,
      },
    ]
    for (const { ask, own, other } of clients) {
      t.same(await ask(pods.b, times), [`b ${own}`], 'to a pod of the same node')
      t.same(await ask(pods.a, times), [`a ${other}`], 'to a pod of the other node')
      t.same(await ask(service, 2 * times), [`a ${other}`, `b ${own}`], 'by the ClusterIP, to endpoints of both nodes')
      t.same(await ask(nodePort(second), times), [`a ${second.address}`, `b ${bridgeOf(ipB)}`], 'by the own NodePort')
      t.same(
        await ask(nodePort(first), times),
        [`a ${bridgeOf(ipA)}`, `b ${first.address}`],
        'by that of the other node',
      )
    }
  })

  await t.test('a rolling update of the endpoints fails no request', async (t) => {
    await apply(deployment('shop', 2))
    await apply({
      ...webService({ selector: { app: 'shop' }, ports: [{ port: 80, targetPort: 8080, nodePort: 30081 }] }),
      metadata: { name: 'shop' },
    })
    await kubectl('rollout', 'status', 'deployment/shop', '--timeout=120s')
    const shop = { address: await addressOf('shop'), port: 80, path: '/name' }
    const before = /^shop-\S+,shop-\S+$/
    await settles(onFirst, shop, before)
    await settles(outside, { ...shop, address: second.address, port: 30081 }, before)
    const stops = [
      await onFirst.keepAsking({ ...shop, patienceMs }),
      await outside.keepAsking({ ...shop, patienceMs, address: second.address, port: 30081 }),
    ]
    await kubectl('rollout', 'restart', 'deployment/shop')
    await kubectl('rollout', 'status', 'deployment/shop', '--timeout=180s')
    await eventually(
      'the pods of before are gone',
      async () => (await kubectl('get', 'pods', '-l', 'app=shop', '-o', 'name')).trim().split('\n').length === 2,
    )
    for (const stop of stops) {
      const counts = await stop()
      const failed = [...counts].filter(([answer]) => !/^shop-\S+$/.test(answer))
      t.same(failed, [], `of ${[...counts.values()].reduce((sum, count) => sum + count, 0)} requests`)
      t.ok(counts.size > 2, 'pods of before and after answered')
    }
  })

  await t.test('an agent that is killed under load and started again fails no request', async (t) => {
    const stop = await onFirst.keepAsking({ ...service, patienceMs, path: '/name' })
    firstAgent.kill('SIGKILL')
    await firstAgent.ended
    const again = await first.startAgent()
    await again.logged('Rules of the network applied', 60_000)
    await controller.nodesReady('pi-1')
    const counts = await stop()
    t.same([...counts.keys()].sort(), ['a', 'b'])
  })

  await t.test(
    'after 50 changes and a restart of both engines endpoints reach themselves, and a client keeps its endpoint',
    async (t) => {
      const other: Asked = { address: await addressOf('none'), port: 80, path: who }
      await patch('web', { sessionAffinity: 'ClientIP' })
      const keeps = async (host: EndpointProgram) => {
        const found = await fromHost(host, service, 20)
        return found.length === 1 && /^[ab] /.test(found.join()) && found.join()
      }
      const chosen = await eventually('the client keeps one endpoint', () => keeps(onFirst))
      const ports = [{ port: 80, targetPort: 8080 }]
      // One kubectl makes all of them, in their order.
      const items = Array.from({ length: 50 }, (_, index) => ({
        ...webService({ selector: { app: index % 2 === 0 ? 'none' : 'web' }, type: 'ClusterIP', ports }),
        metadata: { name: 'none' },
      }))
      const applied = await apply({ apiVersion: 'v1', kind: 'List', items })
      t.equal(applied.match(/^service\/none configured$/gm)?.length, 50)
      await settles(onFirst, other, /^a .*,b /)
      t.equal(await keeps(onFirst), chosen)
      const reachThemselves = async () => {
        const [own, far] = [await ipOf('a'), await ipOf('b')]
        const [ofA, ofB] = [await fromPod('a', other, 20), await fromPod('b', other, 20)]
        const isWhole = ofA.join() === `a ${bridgeOf(own)},b ${own}` && ofB.join() === `a ${far},b ${bridgeOf(far)}`
        return isWhole && [ofA, ofB]
      }
      // Every second change leads to both, and the last one comes to the nodes one after the other.
      await eventually('endpoints reach themselves after the changes', reachThemselves)
      for (const { docker } of [first, second]) await docker.restart()
      await eventually('endpoints reach themselves after the restart', reachThemselves)
      await eventually('the client keeps one endpoint after the restart', () => keeps(onFirst))
      await patch('web', { sessionAffinity: 'None' })
      await settles(onSecond, service, /^a .*,b /)
      // After this many changes it is written once a minute.
      const isSaved = async () => {
        const saved = await second.run('sh', '-c', `cat ${second.dataDir}/network/services-*.json`)
        return !saved.includes('affinitySeconds')
      }
      await eventually('the checkpoint has the last change', isSaved, { withinMs: 150_000 })
    },
  )

  await t.test('without a controller an agent that starts puts everything in place', async (t) => {
    await controller.program.stop()
    secondAgent.kill('SIGKILL')
    await secondAgent.ended
    await second.run('nft', 'delete', 'table', 'ip', 'bramble')
    t.not((await fromHost(onSecond, service, 1)).join().slice(0, 2), 'a ')
    const shown = await second.tryRun(agentLauncher, 'network', 'web.default', '--data-dir', second.dataDir)
    t.match(
      shown.stdout,
      /\n\nFrom the checkpoint, which may be older\. No agent answers at \/run\/bramble\/\w+\.sock: .*\n$/,
    )
    const again = await second.startAgent()
    await again.logged('Rules of the network applied', 60_000)
    t.same(await fromHost(onSecond, service, 20), [`a ${second.address}`, `b ${bridgeOf(ipB)}`])
    t.same(await fromHost(outside, nodePort(second), 20), [`a ${second.address}`, `b ${bridgeOf(ipB)}`])
  })
})

const deployment = (name: string, replicas: number) => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name },
  spec: {
    replicas,
    selector: { matchLabels: { app: name } },
    template: {
      metadata: { labels: { app: name } },
      spec: { terminationGracePeriodSeconds: 20, containers: [container] },
    },
  },
})
