import { test } from 'tap'
import { verdicts } from '../testing/verdicts.ts'
import { type DockerFacts, dockerFindings } from './docker.ts'
import { dockerFinding } from './health.ts'

const engine: DockerFacts = {
  version: '26.1.5',
  storageDriver: 'overlay2',
  cgroupDriver: 'systemd',
  cgroupVersion: '2',
  liveRestore: true,
  rootDirectory: '/var/lib/docker',
}

test('Docker: there, well set up, or what is missing', async (t) => {
  const at = (answer: Parameters<typeof dockerFindings>[0]['answer']) =>
    dockerFindings({ socket: '/run/docker.sock', answer, isSystemdHere: true })
  t.same(verdicts(at(engine)), {
    docker: 'ok',
    'docker-storage': 'ok',
    'docker-cgroups': 'ok',
    'docker-live-restore': 'ok',
  })
  const poor = at({ ...engine, version: '19.03.8', storageDriver: 'vfs', cgroupDriver: 'cgroupfs', liveRestore: false })
  t.same(verdicts(poor), {
    docker: 'problem',
    'docker-storage': 'warning',
    'docker-cgroups': 'warning',
    'docker-live-restore': 'warning',
  })
  t.ok(poor.every(({ remedy }) => remedy !== undefined))
  t.equal(verdicts(at({ ...engine, storageDriver: 'aufs' }))['docker-storage'], 'warning')
  t.equal(verdicts(at({ ...engine, cgroupDriver: 'none' }))['docker-cgroups'], 'problem')
  t.match(at('absent'), [{ verdict: 'problem', found: /no \/run\/docker\.sock/ }])
  t.match(at('refuses'), [{ verdict: 'problem', found: /not running/ }])
  t.match(at('hangs'), [{ verdict: 'problem', found: /does not answer/ }])
  t.match(at('denied'), [{ verdict: 'unknown', remedy: /sudo/ }])
  t.equal(dockerFinding('unheard of', undefined).verdict, 'unknown')
})
