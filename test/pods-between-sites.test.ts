/** Pods of two sites behind NAT reach each other through a node that both reach, and only WireGuard's packets pass their routers. */
import { test } from 'tap'
import { command, inSpace } from './support/machine-commands.ts'
import { podManifest } from './support/manifests.ts'
import { mirror, requestTo, seenBy } from './support/mirror.ts'
import { homeAddress, type NatSites, natSites, whyNoNatSites } from './support/nat-sites.ts'
import { image } from './support/pods.ts'
import { countOnRouters } from './support/router-counts.ts'
import { eventually } from './support/wait.ts'

/** A pod on each machine, with its name: gives their addresses. */
async function withPods({ controller, east, west, middle }: NatSites) {
  const address = async (name: string) => {
    const spec = { nodeName: name, terminationGracePeriodSeconds: 0 }
    const pod = podManifest({ name, image, command: ['sh', '-c', mirror], spec })
    await controller.kubectlWith(pod, 'apply', '-f', '-')
    return await eventually(`an address of ${name}`, async () => {
      const read = ['get', 'pod', name, '-o', 'jsonpath={.status.phase} {.status.podIP}']
      return /^Running ([\d.]+)$/.exec(await controller.kubectl(...read))?.[1]
    })
  }
  return { east: await address(east.name), west: await address(west.name), middle: await address(middle.name) }
}

test('pods of two sites behind NAT, and a relay', { skip: whyNoNatSites() }, async (t) => {
  const sites = await natSites(t)
  const { controller, east, west, middle, inNetworkOf } = sites
  const agents = await Promise.all([east, west, middle].map((one) => one.startAgent()))
  await controller.nodesReady(east.name, west.name, middle.name)
  const cluster = await eventually('the message of the network is saved', async () => {
    return /of ([\d.]+\/\d+)/.exec((await east.networkCommand()).stdout)?.[1]
  })
  const counters = await countOnRouters(sites, [cluster])
  for (const { name } of [east, west])
    await controller.kubectl(
      'annotate',
      'node',
      name,
      `bramble.dev/segment=${name}`,
      'bramble.dev/wireguard-endpoint=none',
    )
  const pods = await withPods(sites)
  const asks = async (pod: keyof typeof pods, address: string) =>
    seenBy((await inNetworkOf(pod, requestTo('/cgi-bin/from', address))).stdout)

  await eventually('a site reaches the node in the middle', async () => (await asks('east', pods.middle)) === pods.east)
  await eventually('and is reached', async () => (await asks('middle', pods.west)) === pods.middle)
  t.equal(await asks('east', pods.west), undefined, 'no relay is named yet')
  const condition = ['-o', 'jsonpath={.status.conditions[?(@.type=="NetworkUnavailable")].message}']
  await eventually('the condition has the reason', async () => {
    const message = await controller.kubectl('get', 'node', 'east', ...condition)
    return /; no route to the pods of west: neither node can be reached/.test(message)
  })

  await controller.kubectl('annotate', 'node', middle.name, 'bramble.dev/relay=true')
  await eventually('the sites reach each other', async () => (await asks('east', pods.west)) === pods.east)
  t.equal(await asks('west', pods.east), pods.west, 'pods keep their addresses')
  const own = pods.east.replace(/\d+$/, '0')
  const byMachine = await east.run('sh', '-c', requestTo('/cgi-bin/from', pods.west))
  t.equal(seenBy(byMachine), own, 'a machine has the address of its end')
  await controller.kubectl('expose', 'pod', 'west', '--name=away', '--type=NodePort', '--port=80')
  const service = ['get', 'service', 'away', '-o', 'jsonpath={.spec.clusterIP} {.spec.ports[0].nodePort}']
  const [clusterIP = '', nodePort = ''] = (await controller.kubectl(...service)).split(' ')
  const end = pods.middle.replace(/\d+$/, '0')
  await eventually('a machine reaches a Service of another site', async () => {
    const request = inSpace(middle.space, 'sh', '-c', requestTo('/cgi-bin/from', clusterIP))
    return seenBy((await command(request[0] ?? '', request.slice(1))).stdout) === end
  })
  const outside = requestTo('/cgi-bin/from', middle.router.address, Number(nodePort))
  t.equal(seenBy((await command('sh', ['-c', outside])).stdout), end, 'and so does a client by its node port')
  const connect = { host: pods.west, port: 80, localAddress: middle.router.address, timeout: 10_000 }
  const byLink = `const { connect } = require('node:net')
    const socket = connect(${JSON.stringify(connect)}, () => socket.end('GET /cgi-bin/from HTTP/1.0\\r\\n\\r\\n'))
    socket.on('timeout', () => process.exit()).pipe(process.stdout)`
  t.equal(
    seenBy(await middle.run(process.execPath, '-e', byLink)),
    end,
    'a program with another address of its machine',
  )
  const { stdout: large } = await inNetworkOf('east', `${requestTo('/large', pods.west)} | wc -c`)
  t.ok(Number(large) > 500_000, `a large answer is not cut at the MTU: ${large}`)
  for (const count of counters) {
    t.ok((await count('wireguard')) > 300, 'packets of WireGuard pass the router')
    t.same([await count('pods'), await count('others')], [0, 0], 'and no others')
  }

  const key = 'bramble.dev/wireguard-public-key'
  const forged = await controller.tryKubectl('annotate', 'node', 'west', '--overwrite', `${key}=${'A'.repeat(42)}8=`)
  t.match(forged.stderr, /only the node itself may set the annotation/)

  agents[0]?.kill('SIGKILL')
  await agents[0]?.ended
  t.equal(await asks('east', pods.west), pods.east, 'while an agent is dead')
  const again = await east.startAgent()
  await again.logged('Agent starting')
  await controller.nodesReady(east.name)
  t.equal(await asks('west', pods.east), pods.west, 'and when it starts again')

  const other = middle.router.address.replace(/\d+$/, '77')
  const gateway = `ip route replace default via ${sites.network.hostAddress}`
  await middle.run(
    'sh',
    '-c',
    `ip address del ${middle.router.address}/24 dev host0; ip address add ${other}/24 dev host0; ${gateway}`,
  )
  const elsewhere = `ip address del ${homeAddress}/24 dev host0; ip address add 192.168.7.9/24 dev host0; ip route replace default via 192.168.7.1`
  await west.run('sh', '-c', elsewhere)
  const isReached = async () => (await asks('east', pods.west)) === pods.east
  await eventually('the sites follow the relay to its address', isReached)
  t.equal(await asks('west', pods.middle), pods.west)
  await eventually('the report has both ways', async () => {
    const { stdout, code } = await west.networkCommand()
    const hasWays = /east +\S+ +\S+ +relay middle +in place\n[\s\S]*middle +\S+ +\S+ +wireguard +in place\n/.test(
      stdout,
    )
    return hasWays && code === 0
  })

  await controller.program.stop()
  await sites.controllerAgain({ podNetworkTunnel: 'vxlan' })
  await eventually('no WireGuard is left', async () => {
    const links = await Promise.all([east, west, middle].map(({ run }) => run('ip', 'link')))
    return !links.join('').includes('bramble-wg')
  })
  // By VXLAN each is to prove its address, which none can behind NAT.
  await eventually('the report names them', async () => /not proven/.test((await east.networkCommand()).stdout))
  await eventually('packets to their pods do not leave by the default route', async () =>
    (await east.run('ip', 'route')).includes('unreachable'),
  )
})
