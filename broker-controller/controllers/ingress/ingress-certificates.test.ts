import { test } from 'tap'
import type { IngressSpec } from '../../../api/network/ingress.ts'
import { anIngress, aRule } from '../../testing/ingress-objects.ts'
import type { CheckedCertificate } from './certificate-check.ts'
import {
  certificateList,
  type IngressCertificateSettings,
  ingressCertificates,
  namedSecrets,
} from './ingress-certificates.ts'
import { fileRoom } from './ingress-problem.ts'

const secrets: { readonly [key: string]: CheckedCertificate } = {
  'default/a': { file: 'a.pem', pem: 'AAAA' },
  'default/b': { file: 'b.pem', pem: 'BBBB' },
  'default/same': { file: 'a.pem', pem: 'AAAA' },
  'default/bad': { problem: 'has no private key' },
}

function opened(over: Partial<IngressCertificateSettings> = {}) {
  const settings = { defaultCertificate: undefined, mostBytes: 1000, room: fileRoom(10_000), ...over }
  const certificates = ingressCertificates((key) => secrets[key], settings)
  return {
    certificates,
    hosts: () => Object.fromEntries(certificates.hosts),
    files: () => [...certificates.files.keys()],
    add: (name: string, ...tls: NonNullable<IngressSpec['tls']>) =>
      certificates
        .add(anIngress(name, { tls, rules: [aRule('rule.example.com'), aRule('')] }))
        .map(({ reason, message }) => `${reason}: ${message}`),
  }
}

test('a host has the certificate of its Ingress, or a problem with its remedy', async (t) => {
  const none = 'have no HTTPS'
  const cases: readonly (readonly [
    string,
    NonNullable<IngressSpec['tls']>[number],
    hosts: object,
    problem?: string,
  ])[] = [
    ['its own', { hosts: ['a.example.com'], secretName: 'a' }, { 'a.example.com': 'a.pem' }],
    ['a wildcard', { hosts: ['*.example.com'], secretName: 'a' }, { '*.example.com': 'a.pem' }],
    ['the hosts of the rules', { secretName: 'a' }, { 'rule.example.com': 'a.pem' }],
    [
      'a host that cannot be one',
      { hosts: ['', 'A B'], secretName: 'a' },
      {},
      'An entry of spec.tls has no effect: name its hosts',
    ],
    [
      'no Secret',
      { hosts: ['a.example.com'] },
      {},
      `Hosts a.example.com ${none}: name a Secret in spec.tls, or configure ingress.defaultCertificate`,
    ],
    [
      'a Secret that is missing',
      { hosts: ['1', '2', '3', '4'].map((one) => `${one}.example.com`), secretName: 'none' },
      {},
      'Secret default/none does not exist: create it with kubectl create secret tls. ' +
        `Hosts 1.example.com, 2.example.com, 3.example.com ${none}`,
    ],
    [
      'a Secret that cannot be used',
      { hosts: ['a.example.com'], secretName: 'bad' },
      {},
      `Secret default/bad has no private key. Hosts a.example.com ${none}`,
    ],
  ]
  for (const [title, tls, hosts, problem] of cases) {
    const certificates = opened()
    const problems = problem === undefined ? [] : [`CertificateUnavailable: ${problem}`]
    t.same(certificates.add('one', tls), problems, title)
    t.same(certificates.hosts(), hosts, title)
  }
})

test('hosts without a certificate of their own have the default one', async (t) => {
  const { add, certificates, hosts } = opened({ defaultCertificate: 'default/b' })
  t.equal(certificates.otherwise, 'b.pem')
  t.same(add('one', { hosts: ['a.example.com'] }), [])
  t.match(add('two', { hosts: ['a.example.com'], secretName: 'none' }), [/ are served with the default certificate$/])
  t.same(hosts(), {})
  t.equal(opened({ defaultCertificate: 'default/none' }).certificates.otherwise, undefined)
})

test('the first Ingress that names a host keeps it; one with an equal certificate does not conflict', async (t) => {
  const { add, hosts, files } = opened()
  const tls = (secretName: string) => ({ hosts: ['a.example.com'], secretName })
  add('old', tls('a'))
  t.same(add('young', tls('b'), { hosts: ['b.example.com'], secretName: 'b' }), [
    'CertificateConflict: Host a.example.com has the certificate of Ingress default/old, which is older: ' +
      'change or delete one of them',
  ])
  t.same(add('same', tls('same')), [])
  t.same(add('twice', { hosts: ['b.example.com'], secretName: 'b' }), [])
  t.same(add('itself', { hosts: ['c.example.com'], secretName: 'a' }, { hosts: ['c.example.com'], secretName: 'b' }), [
    'CertificateConflict: Host c.example.com has the certificate of an earlier entry of spec.tls: remove it from one of them',
  ])
  t.same(
    [hosts(), files()],
    [{ 'a.example.com': 'a.pem', 'b.example.com': 'b.pem', 'c.example.com': 'a.pem' }, ['a.pem', 'b.pem']],
  )
})

test('certificates and hosts that find no room are named', async (t) => {
  const small = opened({ mostBytes: 7 })
  const tls = (secretName: string, ...hosts: readonly string[]) => ({ hosts, secretName })
  t.same(small.add('one', tls('a', 'a.example.com'), tls('same', 'c.example.com')), [], 'equal ones count once')
  t.match(small.add('two', tls('b', 'b.example.com')), [
    /^.*Secret default\/b: all certificates together are too large/,
  ])
  const short = opened({ room: fileRoom(100) })
  t.same(short.add('one', tls('a', 'a.example.com', 'b.example.com')), [
    'TooManyIngresses: Host b.example.com has no HTTPS: the proxies cannot read more hosts',
  ])
  t.same(short.hosts(), { 'a.example.com': 'a.pem' })
  t.same(short.add('two', tls('a', 'a.example.com')), [], 'a host that is there takes no further room')
})

test('the list has the file of other hosts first, then at most fifty hosts in a line', async (t) => {
  const names = Array.from({ length: 51 }, (_, index) => `h${index}.example.com`)
  const { add, certificates } = opened({ defaultCertificate: 'default/b' })
  add('one', { hosts: names, secretName: 'a' })
  t.equal(
    certificateList(certificates, '/etc/x'),
    `/etc/x/b.pem *\n/etc/x/a.pem ${names.slice(0, 50).join(' ')}\n/etc/x/a.pem h50.example.com\n`,
  )
  t.equal(certificateList(opened().certificates, '/etc/x'), '')
})

test('the Secrets that Ingresses name are those of their namespaces', async (t) => {
  const ingress = (namespace: string, ...names: readonly (string | undefined)[]) =>
    anIngress(
      'one',
      { tls: names.map((secretName) => (secretName === undefined ? {} : { secretName })) },
      { namespace },
    )
  t.same(
    [...namedSecrets([ingress('a', 'x', undefined, 'y', ''), ingress('b', 'x'), ingress('a', 'x'), ingress('c')])],
    ['a/x', 'a/y', 'b/x'],
  )
})
