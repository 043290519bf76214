/** What operators have asked of the whole fleet, as notices: the rollout of a release, and the maintenance of the machines. */
import { rolloutKey, rolloutPauses } from '../../api/node/agent-rollout.ts'
import { maintenanceKey, maintenancePauses } from '../../api/node/fleet-maintenance.ts'
import { maintenanceView } from '../model/maintenance-view.ts'
import { rolloutView } from '../model/rollout-view.ts'
import { type OperatorMap, OperatorNotice } from './operator-notice.tsx'

const rollout: OperatorMap = {
  key: rolloutKey,
  label: 'Rollout of the agent',
  pauses: rolloutPauses,
  view(map) {
    const found = rolloutView(map)
    if (found === undefined) return undefined
    const { version, level, text, rings, stragglers, action } = found
    return {
      ...{ title: `Agent ${version}`, level, text, action },
      lines: [...rings.map((ring) => `Ring ${ring}`), ...(stragglers === '' ? [] : [`Not waited for: ${stragglers}`])],
      pause: {
        title: `Pause the rollout of ${version}?`,
        question: 'Machines that have not begun no longer may take the release. Those that have it keep it.',
      },
      resume: { title: `Resume the rollout of ${version}?`, question: 'Failures until now no longer count.' },
    }
  },
}

const maintenance: OperatorMap = {
  key: maintenanceKey,
  label: 'Maintenance of the machines',
  pauses: maintenancePauses,
  view(map) {
    const found = maintenanceView(map)
    return (
      found && {
        ...found,
        title: 'Maintenance',
        pause: {
          title: 'Pause the maintenance?',
          question: 'No other machine begins. Those under maintenance are finished.',
        },
        resume: {
          title: 'Resume the maintenance?',
          question: 'Machines that failed are uncordoned, and have their next turn 20 hours after their failure.',
        },
      }
    )
  },
}

export function FleetNotices() {
  return (
    <>
      <OperatorNotice of={rollout} />
      <OperatorNotice of={maintenance} />
    </>
  )
}
