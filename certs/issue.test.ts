import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { connect, createServer, type TLSSocket } from 'node:tls'
import { test } from 'tap'
import { parse } from 'yaml'
import { dayMs, openAuthority } from './authority.ts'
import { issueAdmin, issueNode, issueServer, yearMs } from './issue.ts'
import { kubeconfigText } from './kubeconfig.ts'
import { openssl, temporaryFolder } from './testing/openssl.ts'

test('certificates of every kind are good in openssl’s eyes', async (t) => {
  const folder = await temporaryFolder()
  t.teardown(folder.remove)
  const nowMs = Date.now()
  const authority = await openAuthority(folder.path, nowMs)
  const ca = join(folder.path, 'ca.crt')

  const verified = async (name: string, certificate: string, purpose: string, ...more: string[]) => {
    const path = join(folder.path, `${name}.crt`)
    await writeFile(path, certificate)
    t.match(await openssl('verify', '-x509_strict', '-CAfile', ca, '-purpose', purpose, ...more, path), 'OK', name)
    return openssl('x509', '-in', path, '-noout', '-text', '-nameopt', 'RFC2253')
  }

  await t.test('a server’s, for names and addresses of both families', async (t) => {
    const names = [
      'localhost',
      'pi.example',
      '127.0.0.1',
      '::1',
      'fe80::a:1%eth0',
      '2001:db8::5',
      '::ffff:10.0.0.1',
      'localhost',
    ]
    const { certificate } = issueServer(authority, { names, nowMs })
    const text = await verified('server', certificate, 'sslserver', '-verify_hostname', 'pi.example')
    await verified('server', certificate, 'sslserver', '-verify_ip', '2001:db8::5')
    await t.rejects(openssl('verify', '-CAfile', ca, '-purpose', 'sslclient', join(folder.path, 'server.crt')))
    t.match(text, /Basic Constraints: critical\s+CA:FALSE/)
    t.match(text, /Key Usage: critical\s+Digital Signature\n/)
    t.match(text, /Extended Key Usage:\s+TLS Web Server Authentication\n/)
    const expected =
      'DNS:localhost, DNS:pi.example, IP Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:1, IP Address:FE80:0:0:0:0:0:A:1, ' +
      'IP Address:2001:DB8:0:0:0:0:0:5, IP Address:0:0:0:0:0:FFFF:A00:1'
    t.ok(text.includes(`${expected}\n`), text)
    const read = new X509Certificate(certificate)
    t.equal(read.checkHost('pi.example'), 'pi.example')
    t.equal(read.checkIP('::1'), '::1')
    t.throws(() => issueServer(authority, { names: ['a b'], nowMs }), /Neither a DNS name nor an address: a b/)
    t.throws(() => issueServer(authority, { names: [], nowMs }), /at least one name/)
  })

  await t.test('an administrator’s and a node’s', async (t) => {
    const admin = await verified('admin', issueAdmin(authority, { nowMs }).certificate, 'sslclient')
    t.match(admin, /Subject: CN=kubernetes-admin,O=system:masters/)
    const node = await verified('node', issueNode(authority, { nodeName: 'pi-1', nowMs }).certificate, 'sslclient')
    t.match(node, /Subject: CN=system:node:pi-1,O=system:nodes/)
    t.match(node, /TLS Web Client Authentication\n/)
  })

  await t.test('serial numbers are long, positive and never the same', async (t) => {
    const serials = Array.from({ length: 50 }, () => {
      const { certificate } = issueNode(authority, { nodeName: 'pi', nowMs })
      return new X509Certificate(certificate).serialNumber
    })
    t.equal(new Set(serials).size, 50)
    for (const serial of serials) t.match(serial, /^[0-9A-F]{28,32}$/)
  })
})

test('a certificate begins a little ago and never outlives its authority', async (t) => {
  const folder = await temporaryFolder()
  t.teardown(folder.remove)
  const start = Date.UTC(2030, 0, 1)
  const authority = await openAuthority(folder.path, start)
  const dates = (nowMs: number) => {
    const read = new X509Certificate(issueNode(authority, { nodeName: 'pi', nowMs }).certificate)
    return [Date.parse(read.validFrom), Date.parse(read.validTo)]
  }
  t.same(dates(start), [start - 5 * 60_000, start + yearMs])
  const late = authority.notAfterMs - 10 * dayMs
  t.same(dates(late), [late - 5 * 60_000, authority.notAfterMs])
  t.throws(() => dates(authority.notAfterMs), /The authority ended on 2039-12-30/)
})

test('years from 2050 on are written so that openssl reads them', async (t) => {
  const folder = await temporaryFolder()
  t.teardown(folder.remove)
  await openAuthority(folder.path, Date.UTC(2045, 0, 1))
  const dates = await openssl('x509', '-in', join(folder.path, 'ca.crt'), '-noout', '-dates')
  t.match(dates, 'notBefore=Dec 31 23:55:00 2044 GMT\nnotAfter=Dec 30 00:00:00 2054 GMT')
})

test('a server and a node of one fleet meet over mutual TLS; a stranger is turned away', async (t) => {
  const folder = await temporaryFolder()
  t.teardown(folder.remove)
  const nowMs = Date.now()
  const ours = await openAuthority(join(folder.path, 'ours'), nowMs)
  const theirs = await openAuthority(join(folder.path, 'theirs'), nowMs)
  const { certificate, key } = issueServer(ours, { names: ['localhost', '127.0.0.1'], nowMs })
  const server = createServer({
    cert: certificate + ours.certificate,
    key,
    ca: ours.certificate,
    requestCert: true,
    rejectUnauthorized: true,
  })
  server.on('secureConnection', (socket: TLSSocket) => {
    const { CN, O } = socket.getPeerCertificate().subject
    socket.end(`${O} ${CN}`)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0

  const meet = async (node: { certificate: string; key: string } | undefined, ca = ours.certificate) => {
    const credentials = node === undefined ? {} : { cert: node.certificate, key: node.key }
    const socket = connect({ host: '127.0.0.1', port, ca, ...credentials })
    let output = ''
    socket.on('data', (chunk) => {
      output += chunk
    })
    // TLS 1.3: a client may be done before the server turns it away, and then see an end as well as an error.
    await once(socket, 'close').catch(() => undefined)
    return output
  }
  t.equal(await meet(issueNode(ours, { nodeName: 'pi-1', nowMs })), 'system:nodes system:node:pi-1')
  t.equal(await meet(issueNode(theirs, { nodeName: 'pi-1', nowMs })), '', 'a certificate of another authority')
  t.equal(
    await meet(issueNode(ours, { nodeName: 'pi-1', nowMs: nowMs - yearMs, lifeMs: 1000 })),
    '',
    'one that has expired',
  )
  t.equal(await meet(undefined), '', 'none at all')
  t.equal(
    await meet(issueNode(ours, { nodeName: 'pi-1', nowMs }), theirs.certificate),
    '',
    'the server is the stranger',
  )
})

test('a kubeconfig has all that kubectl needs', async (t) => {
  const text = kubeconfigText({ server: 'https://[::1]:6443', ca: 'CA', certificate: 'CERT', key: 'KEY' })
  const read = parse(text)
  t.equal(read['current-context'], 'bramble')
  t.same(read.contexts, [{ name: 'bramble', context: { cluster: 'bramble', user: 'kubernetes-admin' } }])
  t.equal(read.clusters[0].cluster.server, 'https://[::1]:6443')
  t.equal(Buffer.from(read.clusters[0].cluster['certificate-authority-data'], 'base64').toString(), 'CA')
  t.equal(Buffer.from(read.users[0].user['client-certificate-data'], 'base64').toString(), 'CERT')
  t.equal(Buffer.from(read.users[0].user['client-key-data'], 'base64').toString(), 'KEY')
  t.same(parse(kubeconfigText({ server: 'https://a', ca: 'CA' })).users, undefined, 'for everybody: no key in it')
})
