/** The mark: a berry. */
export function Mark() {
  return (
    <svg class="mark" viewBox="0 0 24 24" width="22" height="22" aria-hidden="true">
      <path d="M12 7c0-3 2-4.5 4.5-4.5C16.5 5 15 7 12 7Z" class="leaf" />
      <circle cx="9" cy="10" r="3.2" />
      <circle cx="15" cy="10" r="3.2" />
      <circle cx="7" cy="14.8" r="3.2" />
      <circle cx="12" cy="14.2" r="3.2" />
      <circle cx="17" cy="14.8" r="3.2" />
      <circle cx="12" cy="19" r="3.2" />
    </svg>
  )
}
