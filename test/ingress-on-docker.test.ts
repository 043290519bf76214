/** Ingresses: the controller, nodes with engines of their own, a HAProxy on each of them, and a client on a third machine, by both families of IP. */
import { spawn } from 'node:child_process'
import { createHash, X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { test } from 'tap'
import { aCertificate, anAuthority, anIngress, aRule } from '../broker-controller/testing/ingress-objects.ts'
import { inSpace } from './support/machine-commands.ts'
import { image } from './support/pods.ts'
import { proxyEntries, whyNoProxy } from './support/proxy-image.ts'
import { routedMachines, whyNoRoutedMachines } from './support/routed-machines.ts'
import { eventually } from './support/wait.ts'

const proxyImage = 'test/haproxy:1'

/** Answers every path with its name. */
const webPod = (name: string, nodeName: string) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, labels: { app: name } },
  spec: {
    nodeName,
    terminationGracePeriodSeconds: 0,
    containers: [
      {
        name: 'main',
        image,
        command: [
          'sh',
          '-c',
          'mkdir -p /www/api/six && hostname | tee /www/index.html /www/api/index.html > /www/api/six/index.html; exec httpd -f -p 8080 -h /www',
        ],
        readinessProbe: { tcpSocket: { port: 8080 }, periodSeconds: 1, timeoutSeconds: 10 },
      },
    ],
  },
})
const service = (name: string, more: object = {}) => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name },
  spec: { selector: { app: name }, ports: [{ name: 'http', port: 80, targetPort: 8080 }], ...more },
})

const ofBothFamilies = { clusterCIDR: '10.244.0.0/16,fd00:10:244::/56', serviceCIDR: '10.96.0.0/12,fd00:10:96::/112' }

/**
 * For `node -e`, with the address, the host, the path and `once` or `load`. Prints the status, the body and the fingerprint of the certificate; or,
 * when its standard input ends, how many requests by HTTP and HTTPS were answered 200, and what else came. Half of the connections are kept.
 */
const client = `
const [address, host, path, mode] = process.argv.slice(1)
const http = require('http'), https = require('https')
const kept = { http: new http.Agent({ keepAlive: true, maxSockets: 2 }), https: new https.Agent({ keepAlive: true, maxSockets: 2 }) }
const ask = (scheme, agent) => new Promise((resolve) => {
  const options = { host: address, path, agent, headers: { host }, timeout: 10000, ...(scheme === 'https' && { servername: host, rejectUnauthorized: false }) }
  const request = (scheme === 'https' ? https : http).get(options, (answer) => {
    const certificate = answer.socket.getPeerCertificate?.().fingerprint256 ?? ''
    let text = ''
    answer.on('data', (data) => { text += data })
    answer.on('end', () => resolve([answer.statusCode, text.trim(), certificate].join(' ')))
  })
  request.on('timeout', () => request.destroy(new Error('timeout')))
  request.on('error', ({ code, message }) => resolve(code ?? message))
})
const load = async () => {
  let isOver = false
  process.stdin.resume().on('end', () => { isOver = true })
  const answers = {}
  const worker = async (scheme, agent) => {
    while (!isOver) {
      const [status] = (await ask(scheme, agent)).split(' ')
      answers[status] = (answers[status] ?? 0) + 1
    }
  }
  await Promise.all(['http', 'https'].flatMap((scheme) => [worker(scheme, kept[scheme]), worker(scheme, false)]))
  console.log(JSON.stringify(answers))
  process.exit()
}
if (mode === 'load') load()
else ask(mode, false).then((text) => console.log(text))
`

const fingerprint = (secret: ReturnType<typeof aCertificate>) => {
  const pem = Buffer.from(secret.data?.['tls.crt'] ?? '', 'base64').toString()
  const digest = createHash('sha256').update(new X509Certificate(pem).raw).digest('hex').toUpperCase()
  return digest.replace(/..(?=.)/g, '$&:')
}

test('Ingresses on two machines', { skip: whyNoRoutedMachines() || whyNoProxy() }, async (t) => {
  const { controller, controllerAgain, first, second, stranger } = await routedMachines(t, {
    controller: { ...ofBothFamilies, ingress: { image: proxyImage } },
  })
  const ipv6Addresses = ['fd00:9::1', 'fd00:9::2']
  for (const [index, { run }] of [first, second, stranger].entries())
    await run('ip', '-6', 'address', 'add', `fd00:9::${index + 1}/64`, 'dev', 'host0', 'nodad')
  const { kubectl, kubectlWith, tryKubectl } = controller
  const apply = (object: object) => kubectlWith(JSON.stringify(object), 'apply', '-f', '-')
  const entries = await proxyEntries()
  for (const machine of [first, second]) {
    await machine.docker.importImage(proxyImage, undefined, entries)
    await machine.startAgent()
  }
  await controller.nodesReady('pi-1', 'pi-2')
  const authority = anAuthority()
  const old = aCertificate(authority, 'a-tls', 'a.example')
  const rules = [aRule('a.example', 'Prefix / web:http', 'Prefix /api api', 'Prefix /api/six six')]
  const { creationTimestamp: _, ...named } = anIngress('pages', {}).metadata
  const pages = {
    ...anIngress('pages', { rules, tls: [{ hosts: ['a.example'], secretName: 'a-tls' }] }),
    metadata: named,
  }
  const six = service('six', { selector: { app: 'api' }, ipFamilies: ['IPv6'] })
  const objects = [webPod('web', 'pi-1'), webPod('api', 'pi-2'), service('web'), service('api'), six, old, pages]
  for (const object of objects) await apply(object)
  const addresses = [...[first.address, second.address].sort(), ...ipv6Addresses].join()
  await eventually('the Ingress has the addresses of both nodes', async () => {
    const printed = await kubectl('get', 'ingress', 'pages', '--no-headers')
    return printed.includes(` ${addresses} `)
  })
  await kubectl('wait', '--for=condition=Ready', 'pod/web', 'pod/api', '--timeout=120s')

  const ask = async (address: string, host: string, path: string, scheme = 'http') =>
    (await stranger.run(process.execPath, '-e', client, address, host, path, scheme)).trim()

  await t.test('requests are led by host and path on each node, and by HTTPS', async (t) => {
    for (const address of [first.address, second.address, ...ipv6Addresses]) {
      for (const [path, name] of [
        ['/', 'web'],
        ['/api/', 'api'],
        ['/api/six/', 'api'],
      ] as const) {
        await eventually(`${name} answers`, async () => (await ask(address, 'a.example', path)) === `200 ${name}`)
      }
      t.match(await ask(address, 'b.example', '/'), /^404 /)
      t.equal(await ask(address, 'a.example', '/', 'https'), `200 web ${fingerprint(old)}`)
      t.match(await ask(address, 'b.example', '/', 'https'), /^E(PROTO|CONN|RR_SSL)/)
    }
  })

  await t.test('a new certificate and a broken Ingress fail no request', async (t) => {
    const [file = '', ...line] = inSpace(
      stranger.space,
      process.execPath,
      '-e',
      client,
      first.address,
      'a.example',
      '/',
      'load',
    )
    const load = spawn(file, line, { stdio: ['pipe', 'pipe', 'inherit'] })
    t.teardown(() => load.kill('SIGKILL'))
    let printed = ''
    load.stdout.setEncoding('utf8').on('data', (text) => {
      printed += text
    })
    const renewed = aCertificate(authority, 'a-tls', 'a.example')
    await apply(renewed)
    const isShown = async () =>
      (await ask(first.address, 'a.example', '/', 'https')) === `200 web ${fingerprint(renewed)}`
    await eventually('the new certificate is shown', isShown)
    const bad = {
      ...old,
      metadata: { name: 'bad', namespace: 'default' },
      data: { 'tls.crt': 'AAAA', 'tls.key': 'AAAA' },
    }
    await apply(bad)
    const brokenRules = [aRule('b.example', 'Prefix / missing')]
    const tls = [{ hosts: ['b.example'], secretName: 'bad' }]
    await apply({ ...anIngress('broken', { rules: brokenRules, tls }), metadata: { name: 'broken' } })
    await eventually('it is answered', async () => (await ask(first.address, 'b.example', '/')).startsWith('503 '))
    load.stdin.end()
    await once(load, 'close')
    const answers = JSON.parse(printed)
    t.same(Object.keys(answers), ['200'], printed)
    t.ok(answers['200'] > 100, printed)
    // Its Events and its addresses are written beside the files of the proxy.
    for (const wanted of [
      'Service default/missing not found',
      'Secret default/bad has no certificate in PEM format',
      `Address:          ${addresses}`,
    ]) {
      await eventually(wanted, async () => (await kubectl('describe', 'ingress', 'broken')).includes(wanted))
    }
    const described = await kubectl('describe', 'ingress', 'broken')
    t.match(described, /BackendUnavailable .*Service default\/missing not found/)
    t.match(described, /CertificateUnavailable .*Secret default\/bad has no certificate in PEM format/)
  })

  await t.test('without it in the configuration nothing of it is left', async (t) => {
    await controller.program.stop()
    await controllerAgain({ ingress: undefined })
    for (const [kind, name] of [
      ['namespace', 'bramble-ingress'],
      ['ingressclass', 'bramble'],
    ] as const) {
      await eventually(`the ${kind} is gone`, async () => /NotFound/.test((await tryKubectl('get', kind, name)).stderr))
    }
    t.notMatch(await kubectl('get', 'ingress', 'pages', '--no-headers'), first.address)
    for (const address of [first.address, 'fd00:9::1'])
      await eventually('no proxy answers', async () => (await ask(address, 'a.example', '/')) === 'ECONNREFUSED')
  })
})
