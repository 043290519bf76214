/** What HAProxy does with the files that the controller makes of Ingresses: routes, certificates, and reloads by its program. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { rename, writeFile } from 'node:fs/promises'
import { type ClientRequest, createServer, request } from 'node:http'
import { createServer as createHTTP2Server } from 'node:http2'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo, Server } from 'node:net'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { type Test, test } from 'tap'
import type { Ingress } from '../api/network/ingress.ts'
import type { Secret } from '../api/secret.ts'
import { checkCertificate } from '../broker-controller/controllers/ingress/certificate-check.ts'
import { defaultIngressSettings } from '../broker-controller/controllers/ingress/ingress-settings.ts'
import { proxyConfiguration } from '../broker-controller/controllers/ingress/proxy-configuration.ts'
import { proxyFiles, proxyProgram } from '../broker-controller/controllers/ingress/proxy-text.ts'
import {
  aCertificate,
  anAuthority,
  anIngress,
  aPath,
  aRule,
  aService,
} from '../broker-controller/testing/ingress-objects.ts'
import { temporaryFolder } from './support/fleet.ts'
import { skipWithout } from './support/missing-parts.ts'
import { eventually } from './support/wait.ts'

const skip = skipWithout('haproxy', existsSync('/usr/sbin/haproxy'))

type Answer = { readonly status: number; readonly text: string; readonly location: string }

/** HAProxy with the files of these Ingresses, at sockets of a folder. Services answer with their name and the headers of the request. */
async function aProxy(t: Test, services: readonly string[], more: { readonly [name: string]: Server } = {}) {
  const folder = await temporaryFolder(t)
  const ports = new Map<string, number>()
  const answering = (name: string): [string, Server] => {
    return [name, createServer(({ headers }, answer) => answer.end(JSON.stringify({ name, headers })))]
  }
  for (const [name, server] of [...services.map(answering), ...Object.entries(more)]) {
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.teardown(() => server.close())
    ports.set(`default/${name}`, (server.address() as AddressInfo).port)
  }
  const save = async (
    ingresses: readonly Ingress[],
    secrets: readonly Secret[] = [],
    { broken = '', defaultCertificate }: { readonly broken?: string; readonly defaultCertificate?: string } = {},
  ) => {
    const bySecret = new Map(secrets.map((one) => [`default/${one.metadata.name}`, checkCertificate(one)]))
    const builder = proxyConfiguration({
      service(key) {
        const port = ports.get(key)
        return port === undefined ? undefined : aService('one', '127.0.0.1', { ports: [{ name: 'http', port }] })
      },
      certificate: (key) => bySecret.get(key),
      settings: { ...defaultIngressSettings, defaultCertificate, ipv6: false },
      limits: { files: 1e6, certificates: 1e6 },
    })
    for (const ingress of ingresses) builder.add(ingress)
    const { files, certificates } = builder.finish()
    const here = (text: string) =>
      text
        .replaceAll(proxyFiles.folder, folder)
        .replace(/bind :8080$/m, `bind unix@${folder}/http`)
        .replace('bind :8443', `bind unix@${folder}/https`)
        .replace('bind :8404', `bind unix@${folder}/health`)
    for (const [file, text] of certificates) await writeFile(join(folder, file), text)
    for (const [file, text] of files) {
      const content = file === proxyFiles.configuration ? `${here(text)}\n${broken}` : here(text)
      await writeFile(join(folder, `${file}.new`), file === proxyFiles.version ? `${broken.length}${content}` : content)
      await rename(join(folder, `${file}.new`), join(folder, file))
    }
  }
  const ask = (host: string, path: string, options: { readonly socket?: string; readonly headers?: object } = {}) =>
    new Promise<Answer>((resolve, reject) => {
      const { socket = 'http', headers = {} } = options
      const asked: ClientRequest = request(
        { socketPath: join(folder, socket), path, headers: { host, ...headers }, agent: false },
        (answer) => {
          let text = ''
          answer.setEncoding('utf8')
          answer.on('data', (data) => {
            text += data
          })
          answer.on('end', () => {
            resolve({ status: answer.statusCode ?? 0, text, location: answer.headers.location ?? '' })
          })
        },
      )
      asked.on('error', reject).end()
    })
  /** The name of the Service that answers, or the status. */
  const whoAnswers = async (host: string, path: string) => {
    const { status, text } = await ask(host, path)
    return status === 200 ? String(JSON.parse(text).name) : status
  }
  const run = () => startProgram(t, folder)
  const isUp = () => ask('health', '/healthz', { socket: 'health' }).then(({ status }) => status === 200)
  return { folder, save, ask, whoAnswers, run, started: () => eventually('HAProxy answers', isUp) }
}

function startProgram(t: Test, folder: string) {
  // As a container has it: Kubernetes makes `$(` of `$$(`.
  const program = proxyProgram.replaceAll('$$(', '$(').replaceAll(proxyFiles.folder, folder)
  const child = spawn('sh', ['-c', program], { stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text) => {
      output += text
    })
  }
  t.teardown(() => ended(child))
  return { output: () => output, end: () => ended(child) }
}

async function ended(child: ChildProcess): Promise<number | null> {
  if (child.exitCode === null && child.signalCode === null) {
    const exit = once(child, 'exit')
    child.kill('SIGTERM')
    await exit
  }
  return child.exitCode
}

test('requests are led by host and path as Kubernetes describes it', { skip }, async (t) => {
  const proxy = await aProxy(t, ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'])
  const rules = [
    aRule('a.example', 'Exact /exact a:http', 'Prefix / b:http', 'Prefix /foo c:http', 'Prefix /foo/bar/ d:http'),
    aRule('*.w.example', 'Exact /x e:http', 'Prefix /y f:http'),
    aRule('special.w.example', 'Prefix /y g:http'),
    aRule('', 'Exact /plain h:http'),
    aRule('c.example', 'Prefix /gone missing:http'),
    {
      host: 'odd.example',
      http: {
        paths: ['"', "'", '#', '\\', `\${HOME}`, '%[env(HOME)]', '|r', '%20'].map((text) =>
          aPath(`Exact /${text} a:http`),
        ),
      },
    },
  ]
  const fallback = { service: { name: 'h', port: { name: 'http' } } }
  await proxy.save([
    anIngress('one', { rules }),
    anIngress('two', { defaultBackend: fallback, rules: [{ host: 'd.example' }] }),
  ])
  proxy.run()
  await proxy.started()
  const cases: readonly (readonly [host: string, path: string, answer: string | number])[] = [
    ['a.example', '/exact', 'a'],
    ['a.example', '/exact/', 'b'],
    ['a.example', '/exact?x=/foo', 'a'],
    ['a.example', '/', 'b'],
    ['a.example', '/foobar', 'b'],
    ['a.example', '/foo', 'c'],
    ['a.example', '/foo/', 'c'],
    ['a.example', '/foo?x', 'c'],
    ['a.example', '/foo/barx', 'c'],
    ['a.example', '/foo/bar', 'd'],
    ['a.example', '/foo/bar/baz', 'd'],
    ['A.Example:8080', '/foo', 'c'],
    ['a.example.', '/foo', 'c'],
    ['other', '/foo', 404],
    ['one.w.example', '/x', 'e'],
    ['one.w.example', '/y/z', 'f'],
    ['one.w.example', '/', 404],
    ['two.one.w.example', '/x', 404],
    ['w.example', '/x', 404],
    ['special.w.example', '/y', 'g'],
    ['special.w.example', '/x', 'e'],
    ['other', '/plain', 'h'],
    ['a.example', '/plain', 'b'],
    ['[::1]:80', '/plain', 'h'],
    ['c.example', '/gone', 503],
    ['d.example', '/anything', 'h'],
    ['c.example', '/anything', 404],
    ['odd.example', '/"', 'a'],
    ['odd.example', "/'", 'a'],
    ['odd.example', '/\\', 'a'],
    ['odd.example', `/\${HOME}`, 'a'],
    ['odd.example', '/%[env(HOME)]', 'a'],
    ['odd.example', '/|r', 'a'],
    ['odd.example', '/%20', 'a'],
    ['odd.example', `/${process.env['HOME']}`, 404],
  ]
  for (const [host, path, answer] of cases)
    t.equal(await proxy.whoAnswers(host, path), answer, `${host} ${path.slice(0, 9)}`)
})

test('a backend is given who asked, and not what the client claims', { skip }, async (t) => {
  const proxy = await aProxy(t, ['a'])
  const annotations = { 'bramble.dev/https-redirect': 'true' }
  const limited = { annotations: { 'bramble.dev/max-body-size': '10' } }
  await proxy.save([
    anIngress('one', { rules: [aRule('a.example', 'Prefix / a:http')] }),
    anIngress('two', { rules: [aRule('b.example', 'Prefix /r a:http')] }, { annotations }),
    anIngress('three', { rules: [aRule('c.example', 'Prefix / a:http')] }, limited),
  ])
  proxy.run()
  await proxy.started()
  const claims = {
    'x-forwarded-for': '192.0.2.1',
    'x-forwarded-proto': 'https',
    'x-real-ip': '192.0.2.1',
    forwarded: 'for=x',
  }
  const { headers } = JSON.parse((await proxy.ask('a.example', '/', { headers: claims })).text)
  t.match(headers, { host: 'a.example', 'x-forwarded-proto': 'http', 'x-forwarded-host': 'a.example' })
  t.not(headers['x-forwarded-for'], claims['x-forwarded-for'])
  t.same([headers['x-real-ip'], headers.forwarded], [undefined, undefined])
  const upgrade = { connection: 'Upgrade, HTTP2-Settings', upgrade: 'H2C', 'http2-settings': 'AAMAAABk' }
  const past = JSON.parse((await proxy.ask('a.example', '/', { headers: upgrade })).text).headers
  t.same([past.upgrade, past['http2-settings']], [undefined, undefined], 'no way past the rules')
  t.match(await proxy.ask('B.example:80', '/r/x?y=%20'), { status: 308, location: 'https://b.example/r/x?y=%20' })
  const passed = (times: number) => ({ 'x-bramble-ingress': Array.from({ length: times }, () => '1') })
  t.equal((await proxy.ask('a.example', '/', { headers: passed(3) })).status, 200)
  t.equal(
    (await proxy.ask('a.example', '/', { headers: passed(4) })).status,
    508,
    'a Service that leads back to the proxy',
  )
  const sized = async (length: string) =>
    (await proxy.ask('c.example', '/', { headers: { 'content-length': length } })).status
  t.same([await sized('10'), await sized('11')], [200, 413])
})

test('pods are spoken to by HTTPS, HTTP/2 or WebSocket', { skip }, async (t) => {
  const secret = aCertificate(anAuthority(), 'pod', 'pod')
  const pem = (key: string) => Buffer.from(secret.data?.[key] ?? '', 'base64')
  const secure = createSecureServer({ cert: pem('tls.crt'), key: pem('tls.key') }, ({ socket }, answer) => {
    answer.end(JSON.stringify({ name: `by TLS, ${'servername' in socket ? socket.servername : ''}` }))
  })
  const second = createHTTP2Server((asked, answer) => {
    answer.end(JSON.stringify({ name: `by HTTP/${asked.httpVersion}` }))
  })
  const upgrading = createServer().on('upgrade', (_, socket) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n')
    // The example of RFC 6455, 1.3.
    socket.write('Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n')
    socket.on('data', (data) => socket.end(`echo ${data}`))
  })
  const proxy = await aProxy(t, ['a'], { secure, second, upgrading })
  const as = (protocol: string) => ({ annotations: { 'bramble.dev/backend-protocol': protocol } })
  await proxy.save([
    anIngress('one', { rules: [aRule('a.example', 'Prefix / secure:http')] }, as('HTTPS')),
    anIngress('two', { rules: [aRule('b.example', 'Prefix / second:http')] }, as('H2C')),
    anIngress('three', { rules: [aRule('c.example', 'Prefix / upgrading:http')] }),
  ])
  proxy.run()
  await proxy.started()
  t.equal(await proxy.whoAnswers('a.example', '/'), 'by TLS, a.example')
  t.equal(await proxy.whoAnswers('b.example', '/'), 'by HTTP/2.0')
  const headers = { host: 'c.example', connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' }
  const key = { 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==' }
  const asked = request({ socketPath: join(proxy.folder, 'http'), headers: { ...headers, ...key }, agent: false }).end()
  const [, socket] = await once(asked, 'upgrade')
  socket.write('hello')
  const [data] = await once(socket, 'data')
  t.equal(String(data), 'echo hello')
  socket.destroy()
})

/** The name in the certificate that is shown for this name, or the code of an error. */
async function shownFor(folder: string, servername: string): Promise<string> {
  const socket = connect({ path: join(folder, 'https'), servername, rejectUnauthorized: false })
  try {
    await once(socket, 'secureConnect')
    return socket.getPeerCertificate().subjectaltname ?? ''
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : 'error'
  } finally {
    socket.destroy()
  }
}

test('a host has its certificate, and a connection to one without is refused', { skip }, async (t) => {
  const proxy = await aProxy(t, ['a'])
  const authority = anAuthority()
  const tls = [
    { hosts: ['a.example'], secretName: 'one' },
    { hosts: ['*.w.example'], secretName: 'two' },
  ]
  const secrets = [aCertificate(authority, 'one', 'cert-a'), aCertificate(authority, 'two', 'cert-w')]
  await proxy.save([anIngress('one', { rules: [aRule('a.example', 'Prefix / a:http')], tls })], secrets)
  proxy.run()
  await proxy.started()
  t.equal(await shownFor(proxy.folder, 'a.example'), 'DNS:cert-a')
  t.equal(await shownFor(proxy.folder, 'x.w.example'), 'DNS:cert-w')
  for (const name of ['b.example', 'w.example', 'x.y.w.example']) {
    t.match(await shownFor(proxy.folder, name), /^E(RR_SSL|CONN)/)
  }
})

test('the default certificate is shown for hosts without one of their own only', { skip }, async (t) => {
  const proxy = await aProxy(t, ['a'])
  const authority = anAuthority()
  const tls = [{ hosts: ['cert-d'], secretName: 'own' }]
  const secrets = [aCertificate(authority, 'own', 'cert-own'), aCertificate(authority, 'house', 'cert-d')]
  const ingresses = [anIngress('one', { rules: [aRule('cert-d', 'Prefix / a:http')], tls })]
  await proxy.save(ingresses, secrets, { defaultCertificate: 'default/house' })
  proxy.run()
  await proxy.started()
  t.equal(await shownFor(proxy.folder, 'cert-d'), 'DNS:cert-own')
  t.equal(await shownFor(proxy.folder, 'b.example'), 'DNS:cert-d')
})

test('what could not be checked is tried again', { skip }, async (t) => {
  const proxy = await aProxy(t, [])
  await proxy.save([])
  const program = proxy.run()
  await proxy.started()
  const list = join(proxy.folder, proxyFiles.certificateList)
  await writeFile(list, `${proxy.folder}/missing.pem a.example\n`)
  await writeFile(join(proxy.folder, proxyFiles.version), 'next\n')
  await eventually('it is printed', () => program.output().includes('Configuration next refused'))
  await writeFile(list, '')
  await eventually('it is loaded', () => program.output().includes('Configuration next loaded'))
  t.equal(program.output().split('refused, the one before').length, 2, 'it is printed once')
})

test('a change is loaded without a failed request, and one that HAProxy refuses changes nothing', {
  skip,
}, async (t) => {
  const proxy = await aProxy(t, ['a', 'b'])
  const rules = (service: string) => ({ rules: [aRule('a.example', `Prefix / ${service}:http`)] })
  await proxy.save([anIngress('one', rules('a'))])
  const program = proxy.run()
  await proxy.started()
  const failures: unknown[] = []
  let isAsking = true
  const asking = (async () => {
    while (isAsking) {
      const answer = await proxy.whoAnswers('a.example', '/').catch((error: unknown) => error)
      if (answer !== 'a' && answer !== 'b') failures.push(answer)
    }
  })()
  const become = (name: string) =>
    eventually(`${name} answers`, async () => (await proxy.whoAnswers('a.example', '/')) === name)
  await proxy.save([anIngress('one', rules('b'))])
  await become('b')
  await proxy.save([anIngress('one', rules('a'))], [], { broken: 'a line that HAProxy refuses' })
  await eventually('it is printed', () => program.output().includes('refused, the one before it stays'))
  t.match(program.output(), "unknown keyword 'a'")
  t.equal(await proxy.whoAnswers('a.example', '/'), 'b')
  await proxy.save([anIngress('one', rules('a'))])
  await become('a')
  isAsking = false
  await asking
  t.same(failures, [])
  t.equal(await program.end(), 0)
})
