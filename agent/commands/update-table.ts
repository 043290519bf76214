/** The command bramble-update with its options: read, checked, explained and completed from this row. */
import type { Command } from '../../daemon/process/command.ts'
import { agentDefaults } from './command-table.ts'

/** Places of the updates of the agent, and of what its package contains. */
export const updateDefaults = {
  folder: '/var/lib/bramble/updates/agent',
  package: '/usr/lib/bramble-agent',
  runtimes: '/usr/lib/bramble-runtime',
} as const

export const updateProgram = {
  name: 'bramble-update',
  about: 'installs releases of the agent, on trial',
  text: `Install a release of bramble-agent beside that of the package, and run it on trial: it is committed when it has been healthy for
--trial-seconds, and else taken back, with the state that the agent had before. Pods keep running. Needs root.`,
  forms: {
    status: 'show which version runs, and how the last trial ended',
    'install FOLDER': 'try the release in FOLDER: release.json, its signatures, and the archive for this machine',
    fetch: 'for bramble-agent-update.service: download the release that the controller wants, and try it',
    start: 'for bramble-agent.service: print the folder of the version to start',
    committed: 'the same where start fails: print the folder of the committed version, and change nothing',
    judge: 'for bramble-agent-trial.service: watch the version on trial until it is committed or taken back',
  },
  options: {
    'trial-seconds': {
      value: 'S',
      help: 'with judge: how long it must be healthy',
      range: [5, 86_400],
      defaultText: '600',
    },
    'deaf-seconds': {
      value: 'S',
      help: 'with judge: how long the controller may miss it',
      range: [45, 86_400],
      defaultText: '300',
    },
    force: { help: 'with install: also a version that is older than the committed one, or was rejected' },
    'no-restart': { help: 'with install: the trial begins with the next start of the agent' },
    'data-dir': { value: 'DIR', help: 'data directory of the agent', default: agentDefaults.dataDir },
    'docker-socket': { value: 'PATH', help: 'socket of Docker', default: agentDefaults.dockerSocket },
    version: { help: 'print the version' },
  },
  end: 'Exit status: 0 done; 1 failed or refused; 64 wrong usage.',
} as const satisfies Command
