/**
 * A program of its own in the place of a household's MQTT broker. Its argument is how it behaves on each connection, in turn. Prints its port,
 * and each behaviour when its connection has ended, in lines. Ends with its standard input.
 */
import { createServer, type Socket } from 'node:net'
import { fileURLToPath } from 'node:url'
import mqttPacket, { type Packet } from 'mqtt-packet'

export type HouseholdBehaviour = 'flood' | 'large' | 'unasked' | 'deaf' | 'silent' | 'closes' | 'junk'

/** A connection that lasts longer is ended. */
const attackMs = 10_000

const program = fileURLToPath(import.meta.url)

/** The command line of the program. */
export function householdAttacker(behaviours: readonly HouseholdBehaviour[]): readonly [string, ...string[]] {
  return [process.execPath, program, behaviours.join(',')]
}

const devices = 'homeassistant/device/bramble-bramble'
const commands = 'bramble/bramble/machines/pi-1/command'

function publish(
  topic: string,
  payload: string | Buffer,
  more: { retain?: boolean; qos?: 0 | 1 | 2; messageId?: number } = {},
) {
  return mqttPacket.generate({ cmd: 'publish', topic, payload, qos: 0, retain: false, dup: false, ...more })
}

/** Sends as fast as it is read, until the connection ends. */
async function endlessly(socket: Socket, next: (count: number) => Buffer): Promise<void> {
  const closed = new Promise((resolve) => socket.once('close', resolve))
  for (let count = 0; !socket.destroyed; count++) {
    if (socket.write(next(count))) await new Promise((resolve) => setImmediate(resolve))
    else await Promise.race([new Promise((resolve) => socket.once('drain', resolve)), closed])
  }
}

/** Small messages to each topic that is subscribed to: commands that name no button, wrong words, machines that are not there, births. */
const small = Buffer.concat([
  ...['drain', 'restart', 'x'.repeat(100), ''].map((word) => publish(`${commands}/uncordon`, word)),
  publish(`${commands}/drain`, 'uncordon'),
  publish(`${commands}/drain`, 'drain', { retain: true }),
  publish('bramble/bramble/machines/other/command/drain', 'drain'),
  publish('bramble/bramble/machines/../../fleet/command/drain', 'drain'),
  publish('homeassistant/status', 'online'),
  publish('a', ''),
])
const announcement = JSON.stringify({ components: { cordoned: { unique_id: 'x' } }, more: 'x'.repeat(900 * 1024) })

function attack(socket: Socket, behaviour: HouseholdBehaviour): void | Promise<void> {
  switch (behaviour) {
    case 'flood':
      return endlessly(socket, () => Buffer.concat(Array.from({ length: 100 }, () => small)))
    case 'large':
      return endlessly(socket, (count) => publish(`${devices}/made-up-${count}/config`, announcement, { retain: true }))
    case 'unasked':
      return endlessly(socket, (count) =>
        publish(`${devices}/pi-1/config`, announcement, { qos: 2, messageId: (count % 65_000) + 1 }),
      )
    case 'junk':
      return endlessly(socket, () => Buffer.from([0x90, 3, 0, 1, 0x80, 0xd0, 0, 0x40, 2, 0, 9, 0x62, 2, 0, 9]))
    case 'closes':
      socket.destroy()
      return
    case 'deaf':
    case 'silent':
      return
  }
}

function serve(socket: Socket, behaviour: HouseholdBehaviour): void {
  const parser = mqttPacket.parser()
  let hasBegun = false
  socket.on('error', () => undefined)
  const end = setTimeout(() => socket.destroy(), attackMs)
  socket.once('close', () => {
    clearTimeout(end)
    process.stdout.write(`${behaviour}\n`)
  })
  // What it sends must be read, or it would not notice the end.
  if (behaviour === 'silent') return void socket.resume()
  socket.on('data', (bytes) => parser.parse(bytes))
  parser.on('error', () => socket.destroy())
  parser.on('packet', (packet: Packet) => {
    if (packet.cmd === 'connect') socket.write(Buffer.from([0x20, 2, 0, 0]))
    if (packet.cmd === 'subscribe')
      socket.write(mqttPacket.generate({ cmd: 'suback', messageId: packet.messageId ?? 0, granted: [0] }))
    if (packet.cmd === 'unsubscribe')
      socket.write(mqttPacket.generate({ cmd: 'unsuback', messageId: packet.messageId ?? 0, granted: [] }))
    // A deaf broker never has what is published.
    if (packet.cmd !== 'publish') return
    if (behaviour !== 'deaf' && packet.qos > 0)
      socket.write(mqttPacket.generate({ cmd: 'puback', messageId: packet.messageId ?? 0 }))
    if (hasBegun) return
    hasBegun = true
    void attack(socket, behaviour)
  })
}

if (process.argv[1] === program) {
  const behaviours = (process.argv[2] ?? '').split(',') as HouseholdBehaviour[]
  let connections = 0
  const server = createServer((socket) => serve(socket, behaviours[connections++ % behaviours.length] ?? 'silent'))
  server.listen(0, '127.0.0.1', () => {
    const address = server.address()
    process.stdout.write(`${typeof address === 'object' ? address?.port : ''}\n`)
  })
  process.stdin.resume().once('end', () => process.exit())
}
