/** The proxy of Ingresses with IPv6 clients and Services: HAProxy with the files that the controller makes, in a network namespace of its own. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { checkCertificate } from '../broker-controller/controllers/ingress/certificate-check.ts'
import { defaultIngressSettings } from '../broker-controller/controllers/ingress/ingress-settings.ts'
import { proxyConfiguration } from '../broker-controller/controllers/ingress/proxy-configuration.ts'
import { proxyFiles, proxyProgram } from '../broker-controller/controllers/ingress/proxy-text.ts'
import { aCertificate, anAuthority, anIngress, aRule, aService } from '../broker-controller/testing/ingress-objects.ts'
import { temporaryFolder } from './support/fleet.ts'
import { inSpace } from './support/machine-commands.ts'
import { type OwnSpace, ownSpace, whyNoRules } from './support/own-space.ts'
import { whyNoProxy } from './support/proxy-image.ts'
import { eventually } from './support/wait.ts'

const skip = whyNoRules() || whyNoProxy()
/** Addresses of the proxy's pod; below, those of an IPv4-only and an IPv6-only Service. */
const ofPod = { ipv4: '192.168.7.1', ipv6: 'fd00:7::1' }
const [ipv4Service, ipv6Service] = ['10.96.0.7', 'fd00:10:96::8']
const kernelFile = '/proc/net/if_inet6'

/** For `node -e`: each Service answers with its address and the headers of the request. */
const services = `
const http = require('http')
const listen = (address) => new Promise((resolve) => {
  const answer = ({ headers }, response) => response.end(JSON.stringify({ address, headers }))
  http.createServer(answer).listen(80, address, resolve)
})
Promise.all(process.argv.slice(1).map(listen)).then(() => console.log('listening'))
`

/** For `node -e`, with the scheme, the address, the host and the path. Prints the answer as JSON, or the code of an error. */
const client = `
const [scheme, address, host, path] = process.argv.slice(1)
const port = scheme === 'https' ? 8443 : 8080
const options = { host: address, port, path, headers: { host }, servername: host, rejectUnauthorized: false, timeout: 10000 }
const request = require(scheme).get(options, (answer) => {
  let text = ''
  answer.on('data', (data) => { text += data })
  const shown = answer.socket.getPeerCertificate?.().subjectaltname
  answer.on('end', () => console.log(JSON.stringify({ status: answer.statusCode, location: answer.headers.location, shown, text })))
})
request.on('timeout', () => request.destroy(new Error('timeout')))
request.on('error', ({ code }) => console.log(JSON.stringify({ code })))
`

type Answer = { readonly status?: number; readonly location?: string; readonly shown?: string; readonly code?: string }
type Seen = Answer & { readonly address?: string; readonly forwardedFor?: string }

function started(t: Test, { name }: OwnSpace, ...line: readonly string[]) {
  const [file = '', ...args] = inSpace(name, ...line)
  const program = spawn(file, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [program.stdout, program.stderr]) {
    stream.setEncoding('utf8').on('data', (text) => {
      output += text
    })
  }
  t.teardown(async () => {
    if (program.exitCode !== null || program.signalCode !== null) return
    const exit = once(program, 'exit')
    program.kill('SIGTERM')
    await exit
  })
  return () => output
}

/** Its certificate is that of `a.example`. */
async function proxyFolder(t: Test) {
  const folder = await temporaryFolder(t)
  const certificate = checkCertificate(aCertificate(anAuthority(), 'a-tls', 'a.example'))
  const builder = proxyConfiguration({
    service: (key) =>
      key === 'default/six'
        ? aService('six', ipv6Service, { clusterIPs: [ipv6Service] })
        : aService('web', ipv4Service, { clusterIPs: [ipv4Service] }),
    certificate: () => certificate,
    settings: { ...defaultIngressSettings, ipv6: true },
    limits: { files: 1e6, certificates: 1e6 },
  })
  const rules = [aRule('a.example', 'Prefix / web', 'Prefix /six six')]
  builder.add(anIngress('pages', { rules, tls: [{ hosts: ['a.example'], secretName: 'a-tls' }] }))
  const annotations = { 'bramble.dev/https-redirect': 'true' }
  builder.add(anIngress('all', { rules: [aRule('', 'Prefix / web')] }, { annotations }))
  const { files, certificates } = builder.finish()
  const all = [...certificates, ...files].map(([file, text]) => [file, text.replaceAll(proxyFiles.folder, folder)])
  for (const [file = '', text = ''] of all) await writeFile(join(folder, file), text)
  return folder
}

type Machine = { readonly withIPv6?: boolean; readonly kernelFile?: string }

/** The proxy in a network namespace with both Services; without `withIPv6` as Docker leaves a container without IPv6. */
async function aProxy(t: Test, { withIPv6 = true, kernelFile: file = kernelFile }: Machine = {}) {
  const space = await ownSpace(t)
  await space.run('ip', 'link', 'add', 'eth0', 'type', 'veth', 'peer', 'name', 'far')
  if (!withIPv6) await space.run('sysctl', '-qw', 'net.ipv6.conf.all.disable_ipv6=1')
  for (const end of ['eth0', 'far']) await space.run('ip', 'link', 'set', end, 'up')
  const [ipv4, ipv6] = [
    [`${ofPod.ipv4}/24`, `${ipv4Service}/32`],
    withIPv6 ? [`${ofPod.ipv6}/64`, `${ipv6Service}/128`] : [],
  ]
  for (const address of ipv4) await space.run('ip', 'address', 'add', address, 'dev', 'eth0')
  for (const address of ipv6) await space.run('ip', '-6', 'address', 'add', address, 'dev', 'eth0', 'nodad')
  const listening = started(t, space, process.execPath, '-e', services, ipv4Service, ...(withIPv6 ? [ipv6Service] : []))
  await eventually('the Services listen', async () => listening().includes('listening'))
  const folder = await proxyFolder(t)
  // As a container has it: Kubernetes makes `$(` of `$$(`.
  const program = proxyProgram.replaceAll('$$(', '$(').replaceAll(proxyFiles.folder, folder).replace(kernelFile, file)
  const output = started(t, space, 'sh', '-c', program)
  const ask = async (address: string, path = '/', { scheme = 'http', host = 'a.example' } = {}): Promise<Seen> => {
    const answer = JSON.parse(await space.run(process.execPath, '-e', client, scheme, address, host, path))
    if (answer.status !== 200) return answer
    const { address: of, headers } = JSON.parse(answer.text)
    return { ...answer, address: of, forwardedFor: headers['x-forwarded-for'] }
  }
  await eventually('HAProxy answers', async () => (await ask(ofPod.ipv4)).status === 200)
  return { ask, output, folder }
}

test('clients of both families reach the proxy, and Services of both', { skip }, async (t) => {
  const { ask, output, folder } = await aProxy(t)
  for (const client of [ofPod.ipv4, ofPod.ipv6]) {
    t.match(await ask(client), { address: ipv4Service, forwardedFor: client }, 'an IPv4 Service')
    t.match(await ask(client, '/six'), { address: ipv6Service, forwardedFor: client }, 'an IPv6-only Service')
    const secure = await ask(client, '/six', { scheme: 'https' })
    t.match(secure, { address: ipv6Service, forwardedFor: client, shown: 'DNS:a.example' })
    t.match((await ask(client, '/', { scheme: 'https', host: 'b.example' })).code, /^E(PROTO|CONN|RR_SSL)/)
  }
  const host = `[${ofPod.ipv6}]:8080`
  t.match(await ask(ofPod.ipv6, '/x?y', { host }), { status: 308, location: `https://[${ofPod.ipv6}]/x?y` })

  await writeFile(join(folder, proxyFiles.version), 'next\n')
  await eventually('it is loaded again', async () => output().includes('Configuration next loaded'))
  t.match(await ask(ofPod.ipv6, '/six'), { address: ipv6Service, forwardedFor: ofPod.ipv6 }, 'after a reload, too')
})

test('without IPv6 the proxy serves IPv4', { skip }, async (t) => {
  await t.test('a machine or a network that has it off', async (t) => {
    const { ask, output } = await aProxy(t, { withIPv6: false })
    t.match(await ask(ofPod.ipv4), { address: ipv4Service, forwardedFor: ofPod.ipv4 })
    t.match(await ask(ofPod.ipv4, '/six'), { status: 503 })
    t.equal(output(), '')
  })
  await t.test('a kernel that has none', async (t) => {
    const { ask } = await aProxy(t, { kernelFile: '/proc/net/none' })
    t.match(await ask(ofPod.ipv4), { address: ipv4Service, forwardedFor: ofPod.ipv4 })
    t.match(await ask(ofPod.ipv6), { code: 'ECONNREFUSED' }, 'no IPv6 socket is opened')
  })
})
