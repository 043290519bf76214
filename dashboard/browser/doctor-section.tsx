/** What the doctor of a machine finds: examined when someone asks, by the agent, in a session of its node. */
import { useState } from 'preact/hooks'
import type { DoctorAnswer, NodeCard, ShownFinding } from '../../api/dashboard/dashboard-messages.ts'
import { counted } from '../../api/dashboard/view-words.ts'
import { findingLevel, sortedFindings } from '../model/doctor-view.ts'
import { callApi, reasonOf } from './api.ts'
import { useMay } from './hooks.ts'

type Examination =
  | { readonly is: 'none' | 'running' }
  | { readonly is: 'failed'; readonly reason: string }
  | { readonly is: 'done'; readonly answer: DoctorAnswer }

/** Shown to those who may read `nodes/proxy`. */
export function DoctorSection({ node: { name, state } }: { readonly node: NodeCard }) {
  const [examination, setExamination] = useState<Examination>({ is: 'none' })
  const may = useMay({ verb: 'get', resource: 'nodes', subresource: 'proxy', name })
  if (!may) return null
  const examine = async () => {
    setExamination({ is: 'running' })
    try {
      const answer = await callApi('GET', `/ui/api/doctor?node=${encodeURIComponent(name)}`)
      setExamination({ is: 'done', answer: answer as DoctorAnswer })
    } catch (error) {
      setExamination({ is: 'failed', reason: reasonOf(error) })
    }
  }
  const isAway = state === 'lost' || state === 'new'
  return (
    <section class="doctor">
      <h2>Doctor</h2>
      <p class="hint">
        Kernel, disks, power, clock, Docker, files of the agent and the connection, examined on the machine now.
      </p>
      <button type="button" disabled={isAway || examination.is === 'running'} onClick={() => void examine()}>
        {examination.is === 'running' ? 'Examining…' : examination.is === 'done' ? 'Examine again' : 'Examine'}
      </button>
      {isAway && <p class="hint">The controller has no contact with the machine.</p>}
      <div role="status">
        {examination.is === 'failed' && <p class="notice warn">{examination.reason}</p>}
        {examination.is === 'done' && <Findings answer={examination.answer} />}
      </div>
    </section>
  )
}

function Findings({ answer: { findings } }: { readonly answer: DoctorAnswer }) {
  const { urgent, others } = sortedFindings(findings)
  return (
    <>
      {urgent.length === 0 && <p class="notice good">Nothing needs attention.</p>}
      <FindingList findings={urgent} />
      <details>
        <summary>{counted(others.length, 'other check')}</summary>
        <FindingList findings={others} />
      </details>
    </>
  )
}

function FindingList({ findings }: { readonly findings: readonly ShownFinding[] }) {
  return (
    <ul class="conditions findings">
      {findings.map((finding) => (
        <li key={finding.check} class={findingLevel(finding)}>
          <span class="dot" aria-hidden="true" />
          <strong>{finding.check}</strong>
          <span>{finding.verdict}</span>
          <span class="message">
            {finding.found}
            {finding.remedy !== undefined && <b>{finding.remedy}</b>}
          </span>
        </li>
      ))}
    </ul>
  )
}
