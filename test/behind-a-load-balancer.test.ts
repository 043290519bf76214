/** Clients that reach two controllers through a HAProxy, with the configuration of docs/scale.md: its health checks find the one that answers. */
import { test } from 'tap'
import { freePort } from '../agent/testing/free-port.ts'
import { readKubeconfig } from '../broker-controller/commands/connection/kubeconfig.ts'
import { noEtcd } from './support/etcd.ts'
import { startLoadBalancer, whyNoLoadBalancer } from './support/load-balancer.ts'
import { startReplicas } from './support/replicas.ts'
import { eventually } from './support/wait.ts'

test('kubectl works through a load balancer while controllers end and come back', {
  skip: whyNoLoadBalancer() || noEtcd,
  timeout: 300_000,
}, async (t) => {
  const [address, port] = ['127.0.0.1', await freePort()]
  const { controllers, places, start } = await startReplicas(t, { settings: { hosts: [address] } })
  const [first, second] = controllers
  if (first === undefined || second === undefined) throw new Error('There are two controllers')
  const { ca } = await readKubeconfig(first.kubeconfig)
  const { states } = await startLoadBalancer(t, {
    ...{ address, ca },
    api: { port, servers: controllers.map(({ apiUrl }) => placeOf(apiUrl)) },
    mqtt: {
      port: await freePort(),
      servers: places.map(({ address, mqttPort }) => ({ host: address, port: mqttPort })),
    },
  })
  const through = (...args: readonly string[]) =>
    second.tryKubectl('--server', `https://${address}:${port}`, '--request-timeout', '10s', ...args)
  const statusOf = async (backend: string) => (await states(backend)).map(({ status }) => status)
  await eventually('both answer', async () => (await statusOf('bramble-api')).join() === 'UP,UP')
  await eventually('the leader has the port of MQTT', async () => (await statusOf('bramble-mqtt')).join() === 'UP,DOWN')
  for (let number = 0; number < 6; number++) {
    t.match(await through('create', 'configmap', `before-${number}`), { code: 0 }, 'whichever of them it reaches')
  }

  await first.program.stop()
  await eventually(
    'the one that has ended is taken out',
    async () => (await statusOf('bramble-api')).join() === 'DOWN,UP',
  )
  await eventually('the other one leads', async () => (await through('create', 'configmap', 'after')).code === 0)
  for (let number = 0; number < 6; number++)
    t.match(await through('get', 'configmap', 'before-5', 'after'), { code: 0 })
  await eventually('nodes find it, too', async () => (await statusOf('bramble-mqtt')).join() === 'DOWN,UP')

  await start(0)
  await eventually('it is back', async () => (await statusOf('bramble-api')).join() === 'UP,UP')
  for (let number = 0; number < 6; number++) {
    t.match(await through('delete', 'configmap', `before-${number}`), { code: 0 })
  }
})

function placeOf(url: string) {
  const { hostname, port } = new URL(url)
  return { host: hostname, port: Number(port) }
}
