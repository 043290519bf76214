/** Datagrams of UDP over IPv6: between the networks of two pods, with what their kernel learns of the path, and from forged addresses. */
import type { Outcome } from './machine-commands.ts'

type Machine = { run(...line: readonly string[]): Promise<string> }

/** `sh -c` in the network of a pod. */
export type InPod = (pod: string, script: string) => Promise<Outcome>

type Pods = { readonly from: string; readonly to: string; readonly address: string }

/** The bytes of the headers of IPv6 and UDP. */
const headers = 48
const port = 7_000

/**
 * Whether packets with this many bytes of IPv6 arrive and are sent back. They are sent again, as the first one may be lost while the kernel
 * learns the MTU of the path; larger ones pass in fragments from then on.
 */
export async function areEchoed(inPod: InPod, { from, to, address }: Pods, bytes: number): Promise<boolean> {
  const node = (script: string) => `exec ${process.execPath} -e '${script}'`
  const [answered] = await Promise.all([
    inPod(from, node(asking(address, bytes - headers))),
    inPod(to, node(answering)),
  ])
  return answered.stdout === `${bytes - headers}`
}

/** Ends with the first datagram of one byte; one of a test that has failed does without. */
const answering = `
const socket = require("node:dgram").createSocket("udp6")
socket.on("message", (data, { address, port }) => {
  if (data.length === 1) process.exit()
  socket.send(data, port, address)
})
socket.bind(${port})
setTimeout(() => process.exit(), 40000)`

const asking = (address: string, bytes: number) => `
const socket = require("node:dgram").createSocket("udp6")
const send = (bytes, then) => socket.send(Buffer.alloc(bytes), ${port}, "${address}", then)
setInterval(() => send(${bytes}, () => {}), 200)
setTimeout(() => process.exit(), 30000)
socket.on("message", (data) => {
  process.stdout.write(String(data.length))
  send(1, () => process.exit())
})
socket.on("error", () => {})`

/** The MTU of the path to the address that the kernel has learned; undefined: that of the link. */
export async function learnedMtu(inPod: InPod, pod: string, address: string): Promise<number | undefined> {
  const { stdout } = await inPod(pod, `ip -6 route get ${address}`)
  const [, mtu] = / mtu (\d+)/.exec(stdout) ?? []
  return mtu === undefined ? undefined : Number(mtu)
}

/** Five to the discard port, from an address that the machine gets for them. */
export async function sendFrom({ run }: Machine, from: string, to: string): Promise<void> {
  await run('ip', '-6', 'address', 'replace', `${from}/128`, 'dev', 'lo', 'nodad')
  const script = `const socket = require('node:dgram').createSocket('udp6')
    let left = 5
    const send = () => left-- > 0 ? socket.send('?', 9, '${to}', () => setTimeout(send, 50)) : process.exit()
    socket.bind({ address: '${from}' }, send)`
  await run(process.execPath, '-e', script)
  await run('ip', '-6', 'address', 'delete', `${from}/128`, 'dev', 'lo')
}

/** Counts those that arrive at a machine on an interface: all (`arrived`), and those that its rules let it have (`received`) or forward (`passed`). */
export async function countDatagrams({ run }: Machine, device: string) {
  const commands = [
    'add table ip6 arriving',
    'add chain ip6 arriving arrived { type filter hook prerouting priority -350; }',
    'add chain ip6 arriving received { type filter hook input priority 100; }',
    'add chain ip6 arriving passed { type filter hook forward priority 100; }',
    ...['arrived', 'received', 'passed'].map(
      (chain) => `add rule ip6 arriving ${chain} iifname ${device} udp dport 9 counter comment "${chain}"`,
    ),
  ]
  await run('sh', '-c', `printf '%s\n' '${commands.join('\n')}' | nft -f -`)
  return {
    async counted() {
      const rules = await run('nft', 'list', 'table', 'ip6', 'arriving')
      const found = [...rules.matchAll(/packets (\d+) bytes \d+ comment "(\w+)"/g)]
      return Object.fromEntries(found.map(([, packets, chain = '']) => [chain, Number(packets)]))
    },
    end: () => run('nft', 'delete', 'table', 'ip6', 'arriving'),
  }
}
