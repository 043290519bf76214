import { test } from 'tap'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { startApi } from '../testing/api-under-test.ts'
import { whyNoKubectl } from '../testing/kubectl.ts'

const manifest = `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: db}
spec:
  podSelector: {matchLabels: {app: db}}
  policyTypes: [Ingress, Egress]
  ingress:
  - from:
    - podSelector: {matchLabels: {app: web}}
      namespaceSelector: {matchLabels: {team: shop}}
    - ipBlock: {cidr: 10.0.0.0/8, except: [10.1.0.0/16]}
    ports: [{port: 5432}, {port: 9000, endPort: 9010}, {port: metrics}]
  egress:
  - ports: [{port: 53, protocol: UDP}]
`

test('kubectl and network policies', { skip: whyNoKubectl() }, async (t) => {
  const api = await startApi({ log: quietLog(t) })
  t.teardown(api.stop)
  const ok = async (args: readonly string[], input = '') => {
    const ran = await api.kubectl(args, { input })
    t.equal(ran.code, 0, `kubectl ${args.join(' ')} ${ran.stderr}`)
    return ran.stdout
  }
  await ok(['apply', '-f', '-'], manifest)
  t.match(await ok(['get', 'netpol']), /NAME +POD-SELECTOR +AGE\ndb +app=db +\d+s/)
  const described = await ok(['describe', 'networkpolicy', 'db'])
  t.match(described, /PodSelector: +app=db\n {2}Allowing ingress traffic:\n {4}To Port: 5432\/TCP\n/)
  t.match(described, /From:\n {6}NamespaceSelector: team=shop\n {6}PodSelector: app=web\n/)
  t.match(described, /IPBlock:\n {8}CIDR: 10.0.0.0\/8\n {8}Except: 10.1.0.0\/16\n {2}Allowing egress traffic:\n/)
  t.match(described, /To Port: 53\/UDP\n {4}To: <any> \(traffic not restricted by destination\)\n/)
  t.match(described, /Policy Types: Ingress, Egress/)
  t.match(await ok(['explain', 'netpol.spec.ingress.from']), /FIELD: from <\[\]NetworkPolicyPeer>/)
  await ok(['apply', '--server-side', '--force-conflicts', '-f', '-'], manifest.replace('app: db', 'app: cache'))
  t.match(await ok(['get', 'netpol', 'db', '-o', 'jsonpath={.metadata.generation}']), /^2$/)
  const refused = await api.kubectl(['apply', '-f', '-'], { input: manifest.replace('endPort: 9010', 'endPort: 8') })
  t.match(refused.stderr, /spec.ingress\[0\].ports\[1\].endPort: Invalid value: 9000: must be greater than or equal to/)
})
