import { test } from 'tap'
import { latestVersion } from '../../../api/pod-security/levels.ts'
import { privilegedPolicy } from '../../../api/pod-security/policy.ts'
import { defaultPodSecuritySettings, podSecuritySettings } from './pod-security-settings.ts'

test('without the field everything is privileged and nothing exempt, as in Kubernetes', async (t) => {
  const problems: string[] = []
  t.same(podSecuritySettings(undefined, problems), defaultPodSecuritySettings)
  t.same(
    podSecuritySettings({ defaults: { enforce: '', 'enforce-version': '' } }, problems),
    defaultPodSecuritySettings,
  )
  t.same(problems, [])
})

test('the defaults and the exemptions are those of the file', async (t) => {
  const problems: string[] = []
  const { defaults, exemptions } = podSecuritySettings(
    {
      defaults: { enforce: 'baseline', 'enforce-version': 'v1.30', warn: 'restricted' },
      exemptions: { usernames: ['system:serviceaccount:kube-system:ci'], namespaces: ['kube-system'] },
    },
    problems,
  )
  t.same(problems, [])
  t.same(defaults, {
    ...privilegedPolicy,
    enforce: { level: 'baseline', version: 30 },
    warn: { level: 'restricted', version: latestVersion },
  })
  t.ok(exemptions.namespaces.has('kube-system'))
  t.ok(exemptions.usernames.has('system:serviceaccount:kube-system:ci'))
  t.equal(exemptions.runtimeClasses.size, 0)
})

test('everything that is wrong is named with its field', async (t) => {
  const problems: string[] = []
  podSecuritySettings(
    {
      defaults: { enforce: 'strict', 'warn-version': '1.30' },
      exemptions: { usernames: [''], namespaces: ['Shop', 'a', 'a'], runtimeClasses: ['-'] },
    },
    problems,
  )
  t.match(problems, [
    'podSecurity.defaults.enforce: "strict" must be one of privileged, baseline, restricted',
    'podSecurity.defaults.warn-version: "1.30" must be "latest" or "v1.x"',
    'podSecurity.exemptions.usernames[0]: "" must not be empty',
    /^podSecurity\.exemptions\.namespaces\[0\]: "Shop" /,
    'podSecurity.exemptions.namespaces[2]: "a" is listed twice',
    /^podSecurity\.exemptions\.runtimeClasses\[0\]: "-" /,
  ])
})
