import { test } from 'tap'
import { ingressOptions } from './ingress-options.ts'

const usual = { redirect: false, timeoutSeconds: undefined, maxBodyBytes: undefined, protocol: 'http' }

test('annotations of an Ingress change how it is served', async (t) => {
  t.same(ingressOptions(), { options: usual, problems: [] })
  const annotations = {
    'bramble.dev/https-redirect': 'true',
    'bramble.dev/proxy-timeout': '10m',
    'bramble.dev/max-body-size': '10Mi',
    'bramble.dev/backend-protocol': 'HTTPS',
    'nginx.ingress.kubernetes.io/configuration-snippet': 'deny all;',
  }
  const options = { redirect: true, timeoutSeconds: 600, maxBodyBytes: 10_485_760, protocol: 'https' }
  t.same(ingressOptions(annotations), { options, problems: [] })
})

test('an annotation that cannot be read is ignored, and named', async (t) => {
  const cases: readonly (readonly [string, string])[] = [
    ['bramble.dev/https-redirect', 'yes'],
    ['bramble.dev/proxy-timeout', '10s\n  server evil 192.0.2.1:80'],
    ['bramble.dev/proxy-timeout', '25h'],
    ['bramble.dev/proxy-timeout', '0s'],
    ['bramble.dev/max-body-size', '-1'],
    ['bramble.dev/max-body-size', '1e40'],
    ['bramble.dev/max-body-size', '1m }'],
    ['bramble.dev/backend-protocol', 'h2c proto h2'],
  ]
  for (const [key, value] of cases) {
    const { options, problems } = ingressOptions({ [key]: value })
    t.same(options, usual, `${key}: ${value}`)
    t.match(problems, [{ reason: 'InvalidAnnotation', message: `annotation ${key}: ` }])
    t.equal(problems.length, 1)
  }
})
