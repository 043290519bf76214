import { test } from 'tap'
import { defaultIngressSettings, type IngressSettings, ingressSettings } from './ingress-settings.ts'

test('a fleet has no proxy unless it is configured, and may leave out every field', async (t) => {
  const problems: string[] = []
  t.equal(ingressSettings(undefined, false, problems), undefined)
  t.same(ingressSettings({}, true, problems), defaultIngressSettings)
  t.same(ingressSettings({ httpPort: 8080, accessLog: true }, true, problems), {
    ...{ ...defaultIngressSettings, httpPort: 8080, accessLog: true },
  })
  t.same(problems, [])
})

test('each field that cannot be used has its path and what is expected', async (t) => {
  const cases: readonly (readonly [given: Partial<IngressSettings>, ...problems: readonly string[]])[] = [
    [{ image: 'registry.example.com:5000/haproxy:3.0@sha256:0' }],
    [{ image: '' }, 'ingress.image: "" must be the name of an image'],
    [{ image: 'a b' }, 'ingress.image: "a b" must be the name of an image'],
    [{ image: 'a'.repeat(512) }],
    [{ image: 'a'.repeat(513) }, `ingress.image: "${'a'.repeat(513)}" must be the name of an image`],
    [{ httpPort: 1, httpsPort: 65_535 }],
    [{ httpPort: 0 }, 'ingress.httpPort: 0 must be from 1 to 65535'],
    [{ httpsPort: 65_536 }, 'ingress.httpsPort: 65536 must be from 1 to 65535'],
    [{ httpPort: 443 }, 'ingress.httpsPort: 443 must differ from httpPort'],
    [{ defaultCertificate: 'certs/house.example.com' }],
    ...['house', 'certs/', '/house', 'a/b/c', 'Certs/house', 'certs/House', ''].map((text) => {
      const problem = `ingress.defaultCertificate: ${JSON.stringify(text)} must be NAMESPACE/NAME of a Secret`
      return [{ defaultCertificate: text }, problem] as const
    }),
    [{ memoryLimit: '32Mi' }],
    ...['31Mi', '0', '-1Gi', 'much', ''].map((text) => {
      const problem = `ingress.memoryLimit: "${text}" must be a size of at least 32Mi (like 512Mi)`
      return [{ memoryLimit: text }, problem] as const
    }),
    [{ nodeSelector: { 'example.com/edge': 'yes' } }],
    [{ tolerations: [{ key: 'example.com/edge', operator: 'Exists' }] }],
  ]
  for (const [given, ...expected] of cases) {
    const problems: string[] = []
    ingressSettings(given, true, problems)
    t.same(problems, expected, JSON.stringify(given))
  }
})

test('selectors and tolerations are those that Kubernetes accepts', async (t) => {
  const problems: string[] = []
  const nodeSelector = { 'a b': 'x', edge: 'a b' }
  ingressSettings({ nodeSelector, tolerations: [{ key: 'edge', operator: 'Exists', value: 'yes' }] }, true, problems)
  t.match(problems, [/^ingress\.nodeSelector/, /^ingress\.nodeSelector/, /^ingress\.tolerations\[0]/])
})

test('without a network for Services a proxy could reach nothing', async (t) => {
  const problems: string[] = []
  t.ok(ingressSettings({}, false, problems))
  t.same(problems, [
    'ingress needs podNetwork: routed, as the proxy reaches Services by their addresses: set it, or remove ingress',
  ])
})
