/** The contract of every implementation of `Broker`, exercised by clients with the certificates of nodes. */
import mqtt, { type MqttClient } from 'mqtt'
import { type Test, test } from 'tap'
import { topicName } from '../../api/topics.ts'
import type { Broker, NodeListener, NodeMessage } from '../broker/broker.ts'

export type NodeTls = { readonly ca: string; readonly certificate: string; readonly key: string }

export type BrokerUnderTest = {
  readonly broker: Broker
  /** The port on localhost to which nodes connect. */
  readonly port: number
  tlsOf(node: 'pi-a' | 'pi-b'): NodeTls
}

/** `open` starts a broker for the nodes pi-a and pi-b, and stops it at the end of the test. */
export function brokerContract(
  name: string,
  open: (t: Test, listener: NodeListener) => Promise<BrokerUnderTest>,
  options: { readonly skip?: string | false } = {},
): void {
  const topicsOf = (node: string) => `bramble/v1/nodes/${node}`
  const lost = { topic: `${topicsOf('pi-a')}/connection`, payload: Buffer.from('lost'), qos: 1, retain: true } as const

  const opened = async (t: Test) => {
    const received: NodeMessage[] = []
    const listener: NodeListener = {
      message: (message) => {
        received.push(message)
        return undefined
      },
      connected: () => undefined,
      disconnected: () => undefined,
    }
    const { broker, port, tlsOf } = await open(t, listener)
    const connect = async (node: 'pi-a' | 'pi-b', will?: typeof lost): Promise<MqttClient> => {
      const { ca, certificate, key } = tlsOf(node)
      const client = await mqtt.connectAsync({
        ...{ protocol: 'mqtts', host: 'localhost', port, ca, cert: certificate, key },
        ...{ protocolVersion: 4, clientId: node, clean: true, keepalive: 60, reconnectPeriod: 0 },
        ...(will && { will }),
      })
      t.teardown(() => client.end(true))
      client.on('error', () => undefined)
      return client
    }
    /** What a client receives on these topics of its node, up to a last message on `controller`. */
    const read = async (client: MqttClient, node: string, kinds: readonly string[]) => {
      const messages: string[] = []
      const ended = new Promise<void>((resolve) => {
        client.on('message', (topic, payload) => {
          if (topic === topicName({ kind: 'controller' })) resolve()
          else if (payload.length > 0) messages.push(`${topic.split('/').at(-1)} ${payload}`)
        })
      })
      for (const kind of kinds) await client.subscribeAsync(`${topicsOf(node)}/${kind}`, { qos: 1 })
      return {
        messages,
        async untilEnd() {
          await client.subscribeAsync(topicName({ kind: 'controller' }), { qos: 1 })
          await broker.publish({ kind: 'controller' }, 'end')
          await ended
        },
      }
    }
    const until = async (enough: () => boolean) => {
      while (!enough()) await new Promise((resolve) => setTimeout(resolve, 10))
    }
    return { broker, received, connect, read, until }
  }

  test(`${name}: messages arrive with their node and topic, in their order`, options, async (t) => {
    const { connect, received, until } = await opened(t)
    const client = await connect('pi-a')
    for (let i = 0; i < 20; i++) void client.publish(`${topicsOf('pi-a')}/status`, `${i}`, { qos: 1, retain: true })
    await client.publishAsync(`${topicsOf('pi-a')}/pods/u1`, '', { qos: 1, retain: true })
    await until(() => received.length === 21)
    t.same(
      received.slice(0, 20).map(({ body }) => body),
      Array.from({ length: 20 }, (_, i) => `${i}`),
    )
    t.same(received[0], { node: 'pi-a', topic: { kind: 'status', node: 'pi-a' }, body: '0' })
    t.same(received[20], { node: 'pi-a', topic: { kind: 'pod', node: 'pi-a', uid: 'u1' }, body: '' })
  })

  test(`${name}: a node can neither publish nor read on topics of another`, options, async (t) => {
    const { broker, connect, read, received, until } = await opened(t)
    const [client, other] = [await connect('pi-a'), await connect('pi-b')]
    client.publish(`${topicsOf('pi-b')}/status`, 'forged', { qos: 1, retain: true }, () => undefined)
    await other.publishAsync(`${topicsOf('pi-b')}/status`, 'own', { qos: 1, retain: true })
    await until(() => received.some(({ body }) => body === 'own'))
    const again = await connect('pi-a')
    await broker.publish({ kind: 'desired', node: 'pi-b' }, 'secret')
    const reading = await read(again, 'pi-a', [])
    again.subscribe(`${topicsOf('pi-b')}/desired`, { qos: 1 }, () => undefined)
    await reading.untilEnd()
    t.same(reading.messages, [])
    t.same(
      received.map(({ body }) => body),
      ['own'],
    )
  })

  test(`${name}: a later connection receives what is retained, and nothing else`, options, async (t) => {
    const { broker, connect, read } = await opened(t)
    await broker.publish({ kind: 'desired', node: 'pi-a' }, 'first')
    await broker.publish({ kind: 'desired', node: 'pi-a' }, 'second')
    await broker.publish({ kind: 'calls', node: 'pi-a' }, 'not retained')
    await broker.publish({ kind: 'desired', node: 'pi-a' }, 'once', { retain: false })
    await broker.publish({ kind: 'desired', node: 'pi-b' }, 'withdrawn')
    await broker.withdraw({ kind: 'desired', node: 'pi-b' })
    const first = await read(await connect('pi-a'), 'pi-a', ['desired', 'calls'])
    const second = await read(await connect('pi-b'), 'pi-b', ['desired'])
    await first.untilEnd()
    await second.untilEnd()
    t.same([first.messages, second.messages], [['desired second'], []])
  })

  test(`${name}: a later connection receives what is retained in place of a message`, options, async (t) => {
    const { broker, connect, read } = await opened(t)
    const present = await read(await connect('pi-a'), 'pi-a', ['desired'])
    await broker.publish({ kind: 'desired', node: 'pi-a' }, 'whole', { retained: () => 'short' })
    const later = await read(await connect('pi-b'), 'pi-b', ['desired'])
    await broker.publish({ kind: 'desired', node: 'pi-b' }, 'whole', { retained: () => 'x'.repeat(100_000) })
    await present.untilEnd()
    await later.untilEnd()
    t.same([present.messages[0], later.messages[0]], ['desired whole', 'desired whole'])
    const [first, second] = [await read(await connect('pi-a'), 'pi-a', ['desired']), await connect('pi-b')]
    const long = await read(second, 'pi-b', ['desired'])
    await first.untilEnd()
    await long.untilEnd()
    t.same([first.messages, long.messages], [['desired short'], [`desired ${'x'.repeat(100_000)}`]])
  })

  test(`${name}: a present connection receives each message, and no body of a withdrawn one`, options, async (t) => {
    const { broker, connect, read } = await opened(t)
    const reading = await read(await connect('pi-a'), 'pi-a', ['desired', 'calls'])
    await broker.publish({ kind: 'desired', node: 'pi-a' }, 'first')
    await broker.publish({ kind: 'calls', node: 'pi-a' }, 'call')
    await broker.publish({ kind: 'desired', node: 'pi-a' }, 'once', { retain: false })
    await broker.withdraw({ kind: 'desired', node: 'pi-a' })
    await reading.untilEnd()
    t.same(reading.messages, ['desired first', 'calls call', 'desired once'])
  })

  test(
    `${name}: the last will of a connection that breaks arrives, that of one that ends does not`,
    options,
    async (t) => {
      const { connect, received, until } = await opened(t)
      const leaving = await connect('pi-a', lost)
      await leaving.endAsync()
      const broken = await connect('pi-a', lost)
      await broken.publishAsync(`${topicsOf('pi-a')}/connection`, 'online', { qos: 1, retain: true })
      broken.stream.destroy()
      await until(() => received.length === 2)
      t.same(
        received.map(({ topic, body }) => `${topic.kind} ${body}`),
        ['connection online', 'connection lost'],
      )
    },
  )

  test(`${name}: nothing of a replaced connection follows the first message of the next one`, options, async (t) => {
    const { connect, received, until } = await opened(t)
    const first = await connect('pi-a', lost)
    const ended = new Promise<void>((resolve) => first.once('close', () => resolve()))
    const second = await connect('pi-a', lost)
    await second.publishAsync(`${topicsOf('pi-a')}/connection`, 'online', { qos: 1, retain: true })
    await ended
    await second.publishAsync(`${topicsOf('pi-a')}/status`, 'last', { qos: 1, retain: true })
    await until(() => received.at(-1)?.body === 'last')
    const bodies = received.map(({ body }) => body)
    t.same(bodies.slice(bodies.indexOf('online')), ['online', 'last'])
  })

  test(`${name}: after close nothing arrives`, options, async (t) => {
    const { broker, connect, received } = await opened(t)
    const client = await connect('pi-a', lost)
    await broker.close()
    client.stream.destroy()
    await new Promise((resolve) => setTimeout(resolve, 200))
    t.same(received, [])
  })
}
