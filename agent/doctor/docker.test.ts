import { test } from 'tap'
import { dockerCheck, dockerHealth } from '../health/docker.ts'
import { verdicts } from '../testing/verdicts.ts'
import { type DockerFacts, type DockerSilent, dockerFinding, dockerSettings } from './docker.ts'
import { healthFinding } from './health.ts'

const engine: DockerFacts = {
  version: '26.1.5',
  hasSettings: true,
  storageDriver: 'overlay2',
  cgroupDriver: 'systemd',
  cgroupVersion: '2',
  liveRestore: true,
  rootDirectory: '/var/lib/docker',
  securityOptions: ['name=apparmor', 'name=seccomp,profile=default'],
}

test('Docker: there, well set up, or what is missing', async (t) => {
  const at = (answer: DockerFacts | DockerSilent) => {
    const silence =
      typeof answer === 'string'
        ? ({ kind: answer === 'hangs' ? 'hangs' : 'refuses', sinceMs: Number.POSITIVE_INFINITY } as const)
        : undefined
    const version = typeof answer === 'string' ? undefined : answer.version
    const found = healthFinding(dockerCheck, dockerHealth({ version, silence }))
    return [
      dockerFinding(found, '/run/docker.sock', answer),
      ...(typeof answer === 'string' ? [] : dockerSettings(answer, true)),
    ]
  }
  t.same(verdicts(at(engine)), {
    docker: 'ok',
    'docker-storage': 'ok',
    'docker-cgroups': 'ok',
    'docker-users': 'ok',
    'docker-live-restore': 'ok',
  })
  const poor = at({
    ...engine,
    version: '19.03.8',
    storageDriver: 'vfs',
    cgroupDriver: 'cgroupfs',
    liveRestore: false,
    securityOptions: ['name=seccomp,profile=default', 'name=userns'],
  })
  t.same(verdicts(poor), {
    docker: 'problem',
    'docker-storage': 'warning',
    'docker-cgroups': 'warning',
    'docker-users': 'problem',
    'docker-live-restore': 'warning',
  })
  t.ok(poor.every(({ remedy }) => remedy !== undefined))
  t.equal(verdicts(at({ ...engine, storageDriver: 'aufs' }))['docker-storage'], 'warning')
  const closed = at({ ...engine, securityOptions: ['name=no-new-privileges'] })
  t.equal(verdicts(closed)['docker-users'], 'warning')
  t.equal(verdicts(at({ ...engine, cgroupDriver: 'none' }))['docker-cgroups'], 'problem')
  t.same(verdicts(at({ ...engine, hasSettings: false })), { docker: 'ok', 'docker-settings': 'unknown' })
  t.match(at('absent'), [{ verdict: 'problem', found: /no \/run\/docker\.sock/ }])
  t.match(at('refuses'), [{ verdict: 'problem', found: /not running/ }])
  t.match(at('hangs'), [{ verdict: 'problem', found: /does not answer/ }])
  t.match(at('denied'), [{ verdict: 'unknown', remedy: /sudo/ }])
  t.equal(at({ ...engine, version: 'unknown' })[0]?.verdict, 'unknown')
})
